"""Configuration of the studies of a sweep, and of a synthetic cohort."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, field_validator

from cardiolens.config.base import GivenPath, Seed, Spec


class PhantomSpec(Spec):
    """A synthetic cohort: its studies, their size and their difficulty."""

    seed: Seed = 2026
    n_sampled: Annotated[int, Field(ge=0)] = 0  # studies drawn around the canonical ones
    canonical: tuple[str, ...] = ()  # names of canonical studies to include, e.g. PH-NORMAL
    size: Literal["default", "ci"] = "ci"
    difficulty: Literal["easy", "standard", "hard"] = "standard"
    masks: bool = False


WindowPct = tuple[float, float]  # intensity percentiles shown as black and white
WINDOW_PCT: WindowPct = (1.0, 99.0)


class Windows(Spec):
    """Windows of displayed frames, in percentiles of a volume: one for all, others by sequence or volume."""

    pct: WindowPct = WINDOW_PCT
    by_name: Mapping[str, WindowPct] = {}

    def of(self, sequence: str, volume_id: str) -> WindowPct:
        """The window of a volume: its own before that of its sequence, that before the common one."""
        return self.by_name.get(volume_id, self.by_name.get(sequence, self.pct))


class DatasetSpec(Spec):
    """A cohort: a folder of studies and a file of questions."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
    studies: GivenPath
    questions: GivenPath
    protocol: str = "openprotocol-1"
    window_pct: WindowPct = WINDOW_PCT
    windows: Mapping[str, WindowPct] = {}  # of a sequence (lge) or a volume (lge_4ch), in place of window_pct
    phantom: PhantomSpec | None = None  # generated if `studies` does not exist
    prepared_only: bool = False  # the store is used as it is, without `studies`, e.g. in a bundle

    @property
    def display(self) -> Windows:
        """All windows of the cohort."""
        return Windows(pct=self.window_pct, by_name=self.windows)

    @field_validator("window_pct")
    @classmethod
    def _ordered(cls, value: WindowPct) -> WindowPct:
        if not 0 <= value[0] < value[1] <= 100:
            raise ValueError("must be two percentiles, low below high, both within 0..100")
        return value

    @field_validator("windows")
    @classmethod
    def _each_ordered(cls, value: Mapping[str, WindowPct]) -> Mapping[str, WindowPct]:
        for window in value.values():
            cls._ordered(window)
        return value
