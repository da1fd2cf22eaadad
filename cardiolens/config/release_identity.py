"""Which release a sweep asks: its name, version and digest, as its index gives them."""

from typing import Annotated

from pydantic import Field

from cardiolens.config.base import Spec

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class ReleaseSpec(Spec):
    """A release, told apart from all others by the SHA-256 of its `release.json`."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]  # of the benchmark
    number: Annotated[str, Field(pattern=r"^\d{1,9}(\.\d{1,9}){0,9}$")]  # of the version
    sha256: Digest  # of release.json, which has the digest of every other file
    questions_sha256: Digest  # of questions.jsonl, as release.json has it

    def __str__(self) -> str:
        return f"{self.name} {self.number}, release.json with SHA-256 {self.sha256}"
