"""A statistic in the cohort and in each resample of it, and what it rests on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cardiolens.stats import metrics
from cardiolens.stats.items import Floats, Ints

Key = tuple[str, str]  # metric, scope


class Judged(Protocol):
    """Judged rows, of answers or of reports."""

    @property
    def patient(self) -> Ints: ...

    @property
    def parse_status(self) -> NDArray[np.str_]: ...


@dataclass(frozen=True, slots=True)
class Basis:
    """What a statistic rests on."""

    n_items: int
    n_patients: int
    n_parse_error: int  # truncated replies included
    n_refusal: int
    note: str = ""

    @staticmethod
    def of(rows: Judged, note: str = "") -> "Basis":
        """Counts over judged rows."""
        return Basis(
            n_items=len(rows.patient),
            n_patients=len(np.unique(rows.patient)),
            n_parse_error=int(np.isin(rows.parse_status, ["parse_error", "truncated"]).sum()),
            n_refusal=int((rows.parse_status == "refusal").sum()),
            note=note,
        )


@dataclass(frozen=True, slots=True)
class Statistic:
    """Values as fractions: entry 0 in the cohort, the rest in its resamples; one entry if nothing varies."""

    values: Floats
    basis: Basis

    @property
    def defined(self) -> Floats:
        """The values, without resamples where these would all be the one patient there is."""
        return self.values if self.basis.n_patients > 1 else self.values[:1]


def mean_of(parts: Mapping[str, Statistic], basis: Basis) -> Statistic:
    """The unweighted mean of some statistics, where defined; NaN of none."""
    if not parts:
        return Statistic(np.array([np.nan]), basis)
    return Statistic(metrics.mean_defined(np.stack([part.values for part in parts.values()], axis=-1)), basis)
