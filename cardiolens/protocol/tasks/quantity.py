"""Quantities: answers that are one number, with legal units, a range and a tolerance."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import ConfigDict, Field

_WRITTEN = re.compile(
    r"(?P<before>[^\W\d_]+)? ?(?P<number>[-+]?\d+(?:[.,]\d+)?) ?(?P<after>%|[^\W\d_][^\s,.;()]*(?: cent)?)?"
    r"(?: ?\([^()\d]*\))? ?\.?"
)
PHASE = "phase"  # unit of the number of a phase, as captions number them
_LONGEST = 100  # characters
_GROUPED = re.compile(r"[-+]?\d{1,3},\d{3}")  # "1,200" is 1.2 here and 1200 there


@dataclass(frozen=True)
class Quantity:
    """What a number may be. Range and tolerance are in the first unit; each unit has its multiple of that."""

    units: Annotated[Mapping[str, Annotated[float, Field(gt=0)]], Field(min_length=1)] = field(hash=False)
    low: float
    high: float
    tolerance: Annotated[float, Field(ge=0)]  # greatest error of an answer that counts as right
    whole: bool = False

    __pydantic_config__ = ConfigDict(extra="forbid")

    @property
    def unit(self) -> str:
        """The unit of truths, scores and charts."""
        return next(iter(self.units))

    @property
    def shown(self) -> tuple[str, ...]:
        """The units that a prompt names: one spelling of each."""
        spelling: dict[float, str] = {}
        for name, factor in self.units.items():
            spelling.setdefault(factor, name)
        return tuple(spelling.values())

    def read(self, text: str) -> float:
        """Return a written number in the first unit; ValueError says what is wrong with it."""
        found = _WRITTEN.fullmatch(" ".join(text[: _LONGEST + 1].split()))
        if found is None or len(text) > _LONGEST:
            raise ValueError("is not one number with its unit")
        if _GROUPED.fullmatch(found["number"]):
            raise ValueError("has a comma before three digits, which may part thousands or decimals")
        spelled = [word.casefold() for word in (found["before"], found["after"]) if word]
        factors = {name.casefold(): factor for name, factor in self.units.items()}
        if len(spelled) > 1 or not set(spelled) <= set(factors):
            raise ValueError(f"has another unit than {' or '.join(self.shown)}")
        if not spelled and len(set(factors.values())) > 1:
            raise ValueError(f"has no unit, and {' and '.join(self.shown)} are legal")
        factor = factors[spelled[0]] if spelled else next(iter(factors.values()))
        value = float(found["number"].replace(",", ".")) * factor
        if not self.low <= value <= self.high:
            raise ValueError(f"is outside {self.low:g} to {self.high:g} {self.unit}")
        if self.whole and value != int(value):
            raise ValueError("is not a whole number")
        return value

    def written(self, value: float) -> str:
        """Return a number of the first unit as a truth is written, e.g. 57.3 %."""
        return f"{value:.{0 if self.whole else 1}f} {self.unit}"
