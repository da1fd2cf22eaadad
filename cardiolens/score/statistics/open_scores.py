"""Scores of open questions: errors of numbers with limits of agreement, and places of truths in rankings."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.score.statistics.bootstrap import resampling_weights
from cardiolens.score.statistics.confidence import rows_of
from cardiolens.score.statistics.items import Bools, Floats, Ints, count, patient_rows, strings
from cardiolens.score.statistics.metrics import ratio
from cardiolens.score.statistics.statistic import Basis, Statistic, as_row
from cardiolens.score.statistics.verdict_rows import cohort, judged_shares
from cardiolens.storage.schemas import ILLEGAL_SELECTION

ERROR, WITHIN, BIAS = "absolute_error", "within_tolerance", "bias"
LIMITS = ("limit_low", "limit_high")  # of agreement: bias -+ 1.96 standard deviations (Bland and Altman 1986)
CONSTANT, CONSTANT_WITHIN, GAIN = "constant_error", "constant_within", "error_below_constant"
PLACES = (1, 3, 5)
RECIPROCAL = "reciprocal_rank"
_SPAN = 1.96


def open_scores(
    verdicts: pa.Table, resamples: int, seed: int, patients: Sequence[str] | None = None
) -> pa.Table:
    """Score the numbers and rankings of each arm by subtask, with intervals over patients.

    A number that was not read is in no error, and outside the tolerance; a ranking that was not read has no
    right name. The constant reader always gives the median of the true numbers; `constant_within` is that of
    the best constant for the tolerance.
    """
    names = sorted(patients or cohort(verdicts))
    weights = resampling_weights(len(names), resamples, seed)
    method = f"expanded percentile cluster bootstrap, B={resamples}, seed {seed}"
    is_open = pc.is_in(verdicts["channel"], pa.array(["number", "ranking"]))
    judged_rows = verdicts.filter(pc.and_(is_open, pc.equal(verdicts["status"], "judged")))
    rows: list[dict[str, Any]] = []
    for key in sorted(
        set(zip(*(judged_rows[name].to_pylist() for name in ("arm_id", "subtask")), strict=True))
    ):
        of_arm = pc.and_(pc.equal(judged_rows["arm_id"], key[0]), pc.equal(judged_rows["subtask"], key[1]))
        part = judged_rows.filter(of_arm).combine_chunks()
        patient = patient_rows(part["patient_id"], list(names))
        makes = _numbers if part["channel"][0].as_py() == "number" else _rankings
        status = strings(part["parse_status"])
        for metric, (values, used) in makes(part, patient, weights).items():
            basis = Basis(
                int(used.sum()),
                len(np.unique(patient[used])),
                int(np.isin(status, ["parse_error", "contradicted", "truncated", ILLEGAL_SELECTION]).sum()),
                int((status == "refusal").sum()),
            )
            row = as_row((metric, f"subtask:{key[1]}"), Statistic(values, basis), method)
            rows.append({"arm_id": key[0]} | row)
    return rows_of(rows, judged_shares(verdicts))


def _numbers(rows: pa.Table, patient: Ints, weights: Floats) -> dict[str, tuple[Floats, Bools]]:
    truth, error, tolerance = (count(rows, name) for name in ("truth", "error", "tolerance"))
    every, read = np.ones(len(truth), bool), strings(rows["parse_status"]) == "ok"
    mean = _Means(patient, weights)
    bias, squares = mean.of(error, read), mean.of(error**2, read)
    n_read = mean.number(read)
    spread = np.sqrt(np.clip(squares - bias**2, 0, None) * ratio(n_read, np.clip(n_read - 1, 0, None)))
    constant = np.abs(truth - np.median(truth))
    mean_error = mean.of(np.abs(error), read)
    return {
        ERROR: (mean_error, read),
        WITHIN: (mean.of((np.abs(error) <= tolerance + 1e-9) & read, every), every),
        BIAS: (bias, read),
        LIMITS[0]: (bias - _SPAN * spread, read),
        LIMITS[1]: (bias + _SPAN * spread, read),
        CONSTANT: (mean.of(constant, read), read),
        CONSTANT_WITHIN: (mean.of(_nearest_to_most(truth, tolerance), every), every),
        GAIN: (mean.of(constant, read) - mean_error, read),
    }


def _nearest_to_most(truth: Floats, tolerance: Floats) -> Bools:
    """Return which items are within the tolerance of the constant that is within it of most."""
    ordered, reach = np.sort(truth), 2 * tolerance[0] + 1e-9
    covered = np.searchsorted(ordered, ordered + reach, "right") - np.arange(len(ordered))
    first = ordered[int(np.argmax(covered))]
    within: Bools = (truth >= first) & (truth <= first + reach)
    return within


def _rankings(rows: pa.Table, patient: Ints, weights: Floats) -> dict[str, tuple[Floats, Bools]]:
    place = count(rows, "place")
    every, is_listed = np.ones(len(place), bool), place > 0
    mean = _Means(patient, weights)
    recalls = {f"recall_at_{most}": mean.of(is_listed & (place <= most), every) for most in PLACES}
    reciprocal = mean.of(np.where(is_listed, 1 / np.maximum(place, 1), 0.0), every)
    return {metric: (values, every) for metric, values in (recalls | {RECIPROCAL: reciprocal}).items()}


class _Means:
    """Means over items in the cohort and in each resample of its patients."""

    def __init__(self, patient: Ints, weights: Floats) -> None:
        self._patient, self._weights = patient, weights

    def number(self, used: Bools) -> Floats:
        """Return how many of the items there are."""
        return self._weights @ self._sums(used.astype(np.float64))

    def of(self, values: Floats | Bools, used: Bools) -> Floats:
        """Return the mean over the items used; NaN in a resample that has none."""
        return ratio(self._weights @ self._sums(np.where(used, values, 0.0)), self.number(used))

    def _sums(self, values: Floats) -> Floats:
        sums: Floats = np.bincount(self._patient, values, self._weights.shape[1]).astype(np.float64)
        return sums
