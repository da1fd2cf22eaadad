"""Scores that are means over items of single arms: controls (protocol 8.6), numbers and rankings."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base.phrasing import counted
from cardiolens.protocol.tasks.questions import original_of
from cardiolens.score.statistics.bootstrap import Basis
from cardiolens.score.statistics.counting import Key
from cardiolens.score.statistics.items import Bools, Floats, Ints, count, strings
from cardiolens.score.statistics.metrics import ratio
from cardiolens.score.statistics.statistic import Resampling, Row, Settings, Statistic, as_row
from cardiolens.score.statistics.verdict_rows import percent_judged
from cardiolens.storage.schemas import READ, SCORES
from cardiolens.storage.tables import from_rows

POSITION_BIAS, ORDER_BIAS = "position_bias", "order_bias"
MOVED, FOLLOWED, STRAYED = "moved_with_lesion", "right_with_and_without", "moved_without_cause"
_ORDINAL = "ordinal"
ERROR, WITHIN, BIAS = "absolute_error", "within_tolerance", "bias"
LIMITS = ("limit_low", "limit_high")  # of agreement: bias -+ 1.96 standard deviations (Bland and Altman 1986)
CONSTANT, CONSTANT_WITHIN, GAIN = "constant_error", "constant_within", "error_below_constant"
PLACES = (1, 3, 5)
RECIPROCAL = "reciprocal_rank"
_SPAN = 1.96


@dataclass(frozen=True, slots=True)
class ItemScores:
    """Makes score rows from values of items, resampling the patients of one cohort."""

    sampling: Resampling
    patients: Mapping[str, int]  # their rows in the cohort

    @staticmethod
    def of(settings: Settings, patients: Iterable[str]) -> "ItemScores":
        """Resample sorted patients."""
        rows = {name: at for at, name in enumerate(patients)}
        return ItemScores(Resampling.of(settings, len(rows)), rows)

    def places(self, rows: Iterable[Mapping[str, Any]]) -> Ints:
        """The rows of the cohort that the patients of some items are."""
        return np.array([self.patients[row["patient_id"]] for row in rows], np.int64)

    def row(self, arm: str, key: Key, statistic: Statistic) -> dict[str, Any]:
        """The row of a statistic of an arm."""
        return {"arm_id": arm} | as_row(key, statistic, self.sampling.method)

    def mean(
        self, arm: str, metric: str, values: Floats | Bools, items: list[Row], note: str = ""
    ) -> dict[str, Any]:
        """The row of a mean over items of tier 1."""
        patient = self.places(items)
        status = np.array([row["parse_status"] for row in items], np.str_)
        basis = Basis.of(patient, status, note)
        means = item_mean(np.asarray(values, np.float64), patient, self.sampling.weights)
        return self.row(arm, (metric, "tier:1"), Statistic(means, basis))


def item_mean(values: Floats, patient: Ints, weights: Floats) -> Floats:
    """The mean over items in each resample of patients; NaN where it has none."""
    units = weights.shape[1]
    total = weights @ np.bincount(patient, weights=values, minlength=units)
    return ratio(total, weights @ np.bincount(patient, minlength=units).astype(np.float64))


def table_of(rows: Iterable[Mapping[str, Any]], shares: Mapping[Key, float]) -> pa.Table:
    """A table of score rows, each with the percentage of its items that was judged."""
    return from_rows(
        [{**row, "percent_judged": percent_judged(shares, row["arm_id"], row["scope"])} for row in rows],
        SCORES,
    )


def judged_answers(rows: pa.Table, **columns: object) -> list[dict[str, Any]]:
    """The judged answers to choice questions with some values in columns, without their counts."""
    for name, value in {"channel": "answer", "status": "judged", **columns}.items():
        rows = rows.filter(pc.fill_null(pc.equal(rows[name], value), False))
    answers: list[dict[str, Any]] = rows.drop_columns(["counts"]).to_pylist()
    return answers


def position_scores(arm: str, rows: pa.Table, scores: ItemScores) -> Iterator[Row]:
    """How often each displayed place is chosen, minus how often it is right, whatever it holds.

    Metrics are `position_bias.1`, `position_bias.2`, ... over answers that were read. Ordinal questions,
    with options that are never shuffled, are left out.
    """
    items = [
        row
        for row in judged_answers(rows, tier=1)
        if row["parse_status"] in READ and row["answer_type"] != _ORDINAL and row["option_keys"]
    ]
    named = (row["option_keys"].index(key) for row in items for key in {*row["parsed"], *row["gold"]})
    for place in range(1 + max(named, default=-1)):
        shown = [row["option_keys"][place : place + 1] for row in items]  # none where options are fewer
        excess = [
            sum((key in row["parsed"]) - (key in row["gold"]) for key in keys)
            for row, keys in zip(items, shown, strict=True)
        ]
        yield scores.mean(arm, f"{POSITION_BIAS}.{place + 1}", np.array(excess, np.float64), items)


def order_scores(pair: tuple[str, str], rows: pa.Table, scores: ItemScores) -> Iterator[Row]:
    """Preference for first places on ordinal questions; `pair`: the original, then the reversed order.

    For an item read in both orders the places of the chosen option, 0 first to 1 last, add up to 1 if the
    answer follows the meaning, however conservative, and to 0 if it is always the first. The metric is 1
    minus that sum.
    """
    first, second = (_ordinal_places(rows, arm) for arm in pair)
    common = sorted(first.keys() & second.keys())
    if common:
        preference = np.array([1 - first[item][0] - second[item][0] for item in common])
        yield scores.mean(pair[1], ORDER_BIAS, preference, [second[item][1] for item in common])


def _ordinal_places(rows: pa.Table, arm: str) -> dict[tuple[str, str], tuple[float, Row]]:
    """Displayed place of the chosen option, 0 to 1, by patient and item."""
    return {
        (row["patient_id"], row["qa_id"]): (keys.index(row["parsed"][0]) / (len(keys) - 1), row)
        for row in judged_answers(rows, tier=1, arm_id=arm, answer_type=_ORDINAL)
        for keys in [row["option_keys"]]
        if row["parsed"] and len(row["parsed"]) == 1 and row["parsed"][0] in keys
    }


def lesion_scores(pair: tuple[str, str], rows: pa.Table, scores: ItemScores) -> Iterator[Row]:
    """Score an arm against that on twins without lesions; `pair`: the plain arm, then that on twins.

    Items are questions on a heart and on its twin. Where the true answer differs between them, the answer
    must move; where it is the same, it must not. An answer moved if both replies were read and name other
    options. Items without a changed frame may be one request, and its answer cannot move: the method says how
    many.
    """
    plain, twins = ({row["qa_id"]: row for row in judged_answers(rows, tier=1, arm_id=arm)} for arm in pair)
    both = [
        (plain[original], twin)
        for qa_id, twin in sorted(twins.items())
        if (original := original_of(qa_id)) in plain
    ]
    for metric, is_caused in ((MOVED, True), (FOLLOWED, True), (STRAYED, False)) if both else ():
        pairs = [(row, twin) for row, twin in both if (row["gold"] != twin["gold"]) == is_caused]
        n_same = sum(row["request_key"] == twin["request_key"] for row, twin in pairs)
        note = f"{counted(n_same, 'item')} of one request for both" if n_same else ""
        unread = [twin if row["parse_status"] in READ else row for row, twin in pairs]  # if one was not
        answers = [
            {**row, "parse_status": of["parse_status"]} for (row, _), of in zip(pairs, unread, strict=True)
        ]
        values = np.array(
            [
                bool(row["correct"] and twin["correct"]) if metric == FOLLOWED else _moved(row, twin)
                for row, twin in pairs
            ],
            np.float64,
        )
        yield scores.mean(pair[1], metric, values, answers, note)


def _moved(row: Row, twin: Row) -> bool:
    read = row["parse_status"] in READ and twin["parse_status"] in READ
    return read and set(row["parsed"] or ()) != set(twin["parsed"] or ())


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
        whole = Basis.of(patient, status)
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
