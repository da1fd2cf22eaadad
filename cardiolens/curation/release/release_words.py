"""Command line words of a release, and their legal values."""

import math
from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from cardiolens.config.base import GivenPath, Spec
from cardiolens.config.command_words import Listed


def _shares(value: object) -> object:
    """Parse `dev:0.3,test:0.7` into a mapping."""
    if not isinstance(value, str):
        return value
    pairs = [pair.partition(":") for pair in value.split(",")]
    return {name: share or "1" for name, _, share in pairs}


Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]


class Release(Spec):
    """The words of a release."""

    questions: GivenPath
    studies: GivenPath
    out: GivenPath  # a new folder
    name: Name  # of the benchmark; ids begin with it
    licence: Annotated[str, Field(min_length=1)]  # of questions and images, as its holder gives it
    number: Annotated[str, Field(pattern=r"^\d+(\.\d+)*$")] = "1.0"
    cohorts: Annotated[Mapping[Name, float], BeforeValidator(_shares)] = {"test": 1.0}
    links: GivenPath | None = None  # a file to be written that says which study and patient each id was
    references: bool = False  # reports as questions, whose text was written about a patient
    allow_unverified: bool = False
    frames: bool = False  # the tables hold the frames that each question shows, too
    protocol: str = "openprotocol-1"
    known: Annotated[tuple[GivenPath, ...], Listed] = ()  # folders of studies of public sets
    # digest of duplicates that are as they should be
    duplicates: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")] | None = None
    # digest of texts that a person found to name nobody
    confirmed: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")] | None = None

    @model_validator(mode="after")
    def _check_cohorts(self) -> "Release":
        shares = self.cohorts.values()
        if min(shares) <= 0 or not math.isclose(sum(shares), 1, abs_tol=1e-6):
            raise ValueError(
                f"cohorts: shares {list(shares)} are not positive with sum 1; e.g. dev:0.3,test:0.7"
            )
        for name, path in (("out", self.out), ("links", self.links)):
            for folder in (self.studies, *((self.out,) if name != "out" else ())):
                if path is not None and path.resolve().is_relative_to(folder.resolve()):
                    raise ValueError(f"{name} lies in {folder.name}; name a place elsewhere")
        return self
