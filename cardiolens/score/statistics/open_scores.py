"""Scores of open questions: errors of numbers with limits of agreement, and places of truths in rankings."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.score.statistics.item_scores import ItemScores, item_mean
from cardiolens.score.statistics.items import Bools, Floats, Ints, count, strings
from cardiolens.score.statistics.metrics import ratio
from cardiolens.score.statistics.statistic import Basis, Row, Statistic

ERROR, WITHIN, BIAS = "absolute_error", "within_tolerance", "bias"
LIMITS = ("limit_low", "limit_high")  # of agreement: bias -+ 1.96 standard deviations (Bland and Altman 1986)
CONSTANT, CONSTANT_WITHIN, GAIN = "constant_error", "constant_within", "error_below_constant"
PLACES = (1, 3, 5)
RECIPROCAL = "reciprocal_rank"
_SPAN = 1.96


def open_scores(arm: str, rows: pa.Table, scores: ItemScores) -> Iterator[Row]:
    """Score the numbers and rankings of an arm by subtask, with intervals over patients.

    A number that was not read is in no error, and outside the tolerance; a ranking that was not read has no
    right name. The constant reader always gives the median of the true numbers; `constant_within` is that of
    the best constant for the tolerance.
    """
    is_open = pc.is_in(rows["channel"], pa.array(["number", "ranking"]))
    judged = rows.filter(pc.and_(is_open, pc.equal(rows["status"], "judged")))
    for subtask in sorted(pc.unique(judged["subtask"]).to_pylist()):
        part = judged.filter(pc.equal(judged["subtask"], subtask)).combine_chunks()
        patient = scores.places(part.select(["patient_id"]).to_pylist())
        status = strings(part["parse_status"])
        makes = _numbers if part["channel"][0].as_py() == "number" else _rankings
        whole = Basis.count(patient, status)
        for metric, (values, used) in makes(part, patient, status == "ok", scores.sampling.weights).items():
            n_patients = len(np.unique(patient[used]))
            basis = Basis(int(used.sum()), n_patients, whole.n_parse_error, whole.n_refusal)
            yield scores.row(arm, (metric, f"subtask:{subtask}"), Statistic(values, basis))


def _numbers(rows: pa.Table, patient: Ints, read: Bools, weights: Floats) -> dict[str, tuple[Floats, Bools]]:
    truth, error, tolerance = (count(rows, name) for name in ("truth", "error", "tolerance"))

    def mean(values: Floats) -> Floats:
        return item_mean(values[read], patient[read], weights)

    bias, n_read = mean(error), weights @ np.bincount(patient[read], minlength=weights.shape[1])
    variance = np.clip(mean(error**2) - bias**2, 0, None) * ratio(n_read, np.clip(n_read - 1, 0, None))
    spread = np.sqrt(variance)
    mean_error, constant = mean(np.abs(error)), mean(np.abs(truth - np.median(truth)))
    every = np.ones(len(truth), bool)
    within = (np.abs(error) <= tolerance + 1e-9) & read
    of_read = {
        ERROR: mean_error,
        BIAS: bias,
        LIMITS[0]: bias - _SPAN * spread,
        LIMITS[1]: bias + _SPAN * spread,
        CONSTANT: constant,
        GAIN: constant - mean_error,
    }
    return {name: (values, read) for name, values in of_read.items()} | {
        name: (item_mean(values.astype(np.float64), patient, weights), every)
        for name, values in ((WITHIN, within), (CONSTANT_WITHIN, _nearest_to_most(truth, tolerance)))
    }


def _nearest_to_most(truth: Floats, tolerance: Floats) -> Bools:
    """Return which items are within the tolerance of the constant that is within it of most."""
    ordered, reach = np.sort(truth), 2 * tolerance[0] + 1e-9
    covered = np.searchsorted(ordered, ordered + reach, "right") - np.arange(len(ordered))
    first = ordered[int(np.argmax(covered))]
    within: Bools = (truth >= first) & (truth <= first + reach)
    return within


def _rankings(rows: pa.Table, patient: Ints, read: Bools, weights: Floats) -> dict[str, tuple[Floats, Bools]]:
    place = count(rows, "place")
    every, listed = np.ones(len(place), bool), place > 0
    values = {f"recall_at_{most}": (listed & (place <= most)).astype(np.float64) for most in PLACES}
    values[RECIPROCAL] = np.where(listed, 1 / np.maximum(place, 1), 0.0)
    return {name: (item_mean(value, patient, weights), every) for name, value in values.items()}
