"""Grade measurements into catalogue values, by sex."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

import yaml
from pydantic import ConfigDict, TypeAdapter

Sex = Literal["male", "female"]
Bands = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Quantity:
    """A measured quantity and its reference ranges by sex."""

    finding: str
    unit: str
    source: str
    male: Bands
    female: Bands

    __pydantic_config__ = ConfigDict(extra="forbid")

    def grade(self, number: float, sex: Sex | None) -> str | None:
        """Return the grade of a number; None between two bands, or if the grade depends on an unknown sex."""
        bands = [self.male, self.female] if sex is None else [self.male if sex == "male" else self.female]
        grades_met = {_within(band, number) for band in bands}
        return grades_met.pop() if len(grades_met) == 1 else None


def _within(bands: Bands, number: float) -> str | None:
    return next((value for value, (low, high) in bands.items() if low <= number <= high), None)


@lru_cache(maxsize=1)
def quantities() -> dict[str, Quantity]:
    """Load the quantities by name."""
    tree = yaml.safe_load((Path(__file__).parent / "grades.yaml").read_text(encoding="utf-8"))
    return TypeAdapter(dict[str, Quantity]).validate_python(tree)
