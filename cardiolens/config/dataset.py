"""Configuration of a sweep's dataset, and of a synthetic cohort."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from cardiolens.config.base import GivenPath, Seed, Spec

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class ReleaseSpec(Spec):
    """A release, identified by the SHA-256 of its `release.json`."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]  # of the benchmark
    number: Annotated[str, Field(pattern=r"^\d{1,9}(\.\d{1,9}){0,9}$")]  # of the version
    sha256: Digest  # of release.json, which has the digest of every other file
    questions_sha256: Digest  # of questions.jsonl, as release.json has it

    def __str__(self) -> str:
        return f"{self.name} {self.number}, release.json with SHA-256 {self.sha256}"


class PhantomSpec(Spec):
    """A synthetic cohort: its studies, their size and their difficulty."""

    seed: Seed = 2026  # seed of every random draw
    n_sampled: Annotated[int, Field(ge=0)] = 0  # number of random studies beside the canonical ones
    canonical: tuple[str, ...] = ()  # names of canonical studies to include, e.g. PH-NORMAL
    size: Literal["default", "ci"] = "ci"  # ci: small images, for tests
    difficulty: Literal["easy", "standard", "hard"] = "standard"  # difficulty of the images
    # masks: segmentation masks; twins: beside each heart with lesions the same heart without them, for
    # control lesion; drawn_cycle: a cine begins with any phase, and no file says which is end-diastole
    also: tuple[Literal["masks", "twins", "drawn_cycle"], ...] = ()


_QUESTIONS = "questions.jsonl"
DEFAULT_PROTOCOL = "openprotocol-1"
JOIN = "+"  # between protocols that are asked together
WindowPct = tuple[float, float]  # intensity percentiles shown as black and white
PICTURES = "publicvqa-1"  # protocol of closed questions on single pictures
WINDOW_PCT: WindowPct = (1.0, 99.0)


class Windows(Spec):
    """Display windows in percentiles of a volume: a common one, and others by sequence or volume."""

    pct: WindowPct = WINDOW_PCT
    by_name: Mapping[str, WindowPct] = {}

    def of(self, sequence: str, volume_id: str) -> WindowPct:
        """Return the window of a volume: its own, else that of its sequence, else the common one."""
        return self.by_name.get(volume_id, self.by_name.get(sequence, self.pct))


class DatasetSpec(Spec):
    """A cohort: a folder of studies and a file of questions."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")]  # name in the store's path and in tables
    studies: GivenPath  # the folder of studies
    questions: GivenPath  # the JSON Lines file of questions
    protocol: str = DEFAULT_PROTOCOL  # a packaged protocol, a folder of one, or several as a+b
    # percentiles shown as black and white, per sequence (lge) or volume (lge_4ch); of others 1 and 99
    windows: Mapping[str, WindowPct] = {}
    phantom: PhantomSpec | None = None  # generated if `studies` does not exist
    link_roots: tuple[GivenPath, ...] = ()  # folders that symbolic links of studies may lead into
    # same_pixels: studies that share images; unverified: questions with unverified answers; public_hearts:
    # pictures of public sets, which models may have been trained on (the page notes each of them);
    # absent_studies: the store as it is, without `studies`
    allow: tuple[Literal["same_pixels", "unverified", "public_hearts", "absent_studies"], ...] = ()
    source: GivenPath | None = None  # a folder or file of cases with questions; the cases are the studies
    map: str | None = None  # what the columns of `source` hold: a shipped map, or a YAML file
    split: Literal["train", "test"] = "test"  # split of `source`
    release: ReleaseSpec | None = None  # the release that studies and questions are of; its folder names it

    @property
    def has_cases(self) -> bool:
        """Return whether the studies are cases, which may have texts beside their images."""
        return self.source is not None and not self.has_pictures

    @property
    def has_pictures(self) -> bool:
        """Return whether the studies are the single pictures of a public benchmark."""
        return self.source is not None and self.protocol == PICTURES

    @property
    def display(self) -> Windows:
        """All windows of the cohort."""
        return Windows(by_name=self.windows)

    @property
    def roots(self) -> tuple[Path, ...]:
        """Folders that symbolic links of studies may lead into; empty unless links are allowed."""
        return (self.studies.absolute(), *map(Path.absolute, self.link_roots)) if self.link_roots else ()

    @model_validator(mode="before")
    @classmethod
    def _questions_of_protocol(cls, value: Any) -> Any:
        """Give every packaged protocol a questions file of its own beside the studies of a phantom."""
        if not isinstance(value, Mapping) or value.get("phantom") is None:
            return value
        path, protocol = Path(str(value.get("questions"))), str(value.get("protocol", DEFAULT_PROTOCOL))
        if path.name != _QUESTIONS or protocol == DEFAULT_PROTOCOL or Path(protocol).is_dir():
            return value
        return {**value, "questions": path.with_name(f"questions.{Path(protocol).name}.jsonl")}

    def _problems(self) -> Iterator[str]:
        if (self.source is None) != (self.map is None):
            given, lacking = ("source", "map") if self.map is None else ("map", "source")
            yield (
                f"{given} is given without {lacking}; give both, as dataset=cases dataset.source=/folder "
                "dataset.map=medframeqa"
            )

    @field_validator("windows")
    @classmethod
    def _each_ordered(cls, value: Mapping[str, WindowPct]) -> Mapping[str, WindowPct]:
        for low, high in value.values():
            if not 0 <= low < high <= 100:
                raise ValueError("must be two percentiles, low below high, both within 0..100")
        return value
