"""Scores from option probabilities: separation, calibration and risk (`answer_format=choice`).

Measures take one score per item; `times[resample, item]` is how often a resample holds the item. Ties share a
threshold.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cardiolens.protocol.tasks.legal import letters_of
from cardiolens.score.statistics.bootstrap import resampling_weights
from cardiolens.score.statistics.counting import Key
from cardiolens.score.statistics.items import Bools, Floats, Ints
from cardiolens.score.statistics.metrics import ratio
from cardiolens.score.statistics.statistic import Basis, Statistic, as_row
from cardiolens.score.statistics.verdict_rows import cohort, judged_shares, percent_judged
from cardiolens.storage.schemas import SCORES
from cardiolens.storage.tables import from_rows

AUROC, AVERAGE_PRECISION, BIN, RISK = "auroc", "average_precision", "calibration", "risk"
BINS = 10
COVERAGES = tuple(range(10, 101, 10))  # percent
_BLOCK = 250  # resamples per block: weights per item are larger than the results


@dataclass(frozen=True, slots=True)
class ConfidentAnswers:
    """Answers with the model's confidence in each."""

    confidence: Floats
    right: Bools
    patient: Ints  # row of the cohort
    parse_status: NDArray[np.str_]

    @property
    def hospital(self) -> Ints:
        """Confidence is resampled over patients."""
        return np.full(len(self.patient), -1)

    @staticmethod
    def together(parts: Sequence["ConfidentAnswers"]) -> "ConfidentAnswers":
        """Concatenate the answers of several subtasks."""
        names = [field.name for field in fields(ConfidentAnswers)]
        return ConfidentAnswers(
            **{name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        )

    def where(self, selected: Bools) -> "ConfidentAnswers":
        """Some of the answers."""
        return ConfidentAnswers(*(getattr(self, field.name)[selected] for field in fields(self)))


@dataclass(frozen=True, slots=True)
class Probabilities:
    """Option probabilities of the judged items of one arm and subtask."""

    keys: tuple[str, ...]  # original option keys
    probability: Floats  # (item, option)
    gold: Bools  # (item, option)
    patient: Ints
    parse_status: NDArray[np.str_]
    tier: int
    several: bool  # options may be true together

    @property
    def hospital(self) -> Ints:
        """Confidence is resampled over patients."""
        return np.full(len(self.patient), -1)

    @property
    def confident_answers(self) -> ConfidentAnswers:
        """The top option of each item with its probability; ties go to the earlier option."""
        best = self.probability.argmax(axis=1)
        right = self.gold[np.arange(len(best)), best]
        return ConfidentAnswers(self.probability.max(axis=1), right, self.patient, self.parse_status)


def confidence_scores(
    verdicts: pa.Table,
    requests: pa.Table,
    completions: pa.Table,
    resamples: int,
    seed: int,
    *,
    patients: Sequence[str] | None = None,
) -> pa.Table:
    """AUROC and average precision of yes-no subtasks and of each option of multi-select, calibration, risk.

    Rows as those of `scores`, with metrics `auroc`, `average_precision` (of the second of two options; with
    `.KEY` of one option), and those of `confidence_curves` of each subtask with one right option and of all
    such of tier 1 together. Items without probabilities are left out; pass final completions only,
    and for a part of the arms the sorted `patients` of all.
    """
    patients = cohort(verdicts) if patients is None else patients
    by_subtask = probabilities(verdicts, requests, completions, patients)
    if not by_subtask:
        return SCORES.empty_table()
    weights = resampling_weights(len(patients), resamples, seed)
    method = f"expanded percentile cluster bootstrap, B={resamples}, seed {seed}"
    rows: list[dict[str, Any]] = []
    confident: dict[Key, list[ConfidentAnswers]] = {}
    for (arm, subtask), items in by_subtask.items():
        statistics = _separation(items, weights[:, items.patient])
        scope = f"subtask:{subtask}"
        rows += [
            {"arm_id": arm} | as_row((name, scope), statistics[name], method) for name in sorted(statistics)
        ]
        if not items.several:
            confident.setdefault((arm, scope), []).append(items.confident_answers)
            if items.tier == 1:
                confident.setdefault((arm, "tier:1"), []).append(items.confident_answers)
    for (arm, scope), parts in sorted(confident.items()):
        curves = confidence_curves(ConfidentAnswers.together(parts), weights)
        rows += [{"arm_id": arm} | as_row((name, scope), curves[name], method) for name in sorted(curves)]
    shares = judged_shares(verdicts)
    return rows_of(rows, shares)


def rows_of(rows: Sequence[dict[str, Any]], shares: Mapping[tuple[str, str], float]) -> pa.Table:
    """A table of score rows, each with the share of its items that was judged."""
    return from_rows(
        [row | {"percent_judged": percent_judged(shares, row["arm_id"], row["scope"])} for row in rows],
        SCORES,
    )


def probabilities(
    verdicts: pa.Table, requests: pa.Table, completions: pa.Table, patients: Sequence[str]
) -> dict[Key, Probabilities]:
    """Collect the items with option probabilities, by (arm, subtask), sorted."""
    with_logprobs = completions.filter(pc.is_valid(completions["option_logprobs"]))
    logprobs_by_key = {
        row["request_key"]: row["option_logprobs"]
        for row in with_logprobs.select(["request_key", "option_logprobs"]).to_pylist()
        if row["option_logprobs"]
    }
    if not logprobs_by_key:
        return {}  # the usual case: skip building dictionaries of all requests
    displayed = {
        (row["arm_id"], row["qa_id"]): row["option_keys"]
        for row in requests.select(["arm_id", "qa_id", "option_keys"]).to_pylist()
    }
    is_judged = pc.and_(pc.equal(verdicts["channel"], "answer"), pc.equal(verdicts["status"], "judged"))
    rows = verdicts.filter(is_judged).sort_by(
        [(name, "ascending") for name in ("arm_id", "subtask", "qa_id")]
    )
    groups: dict[Key, list[tuple[dict[str, object], dict[str, float]]]] = {}
    for row in rows.to_pylist():
        if row["request_key"] in logprobs_by_key and displayed.get((row["arm_id"], row["qa_id"])):
            probability = of_options(
                dict(logprobs_by_key[row["request_key"]]),
                displayed[row["arm_id"], row["qa_id"]],
                several=row["answer_type"] == "multi",
            )
            groups.setdefault((row["arm_id"], row["subtask"]), []).append((row, probability))
    number = {patient: at for at, patient in enumerate(patients)}
    return {key: _collect(entries, number) for key, entries in groups.items()}


def of_options(logprobs: Mapping[str, float], displayed: Sequence[str], *, several: bool) -> dict[str, float]:
    """Probability of each original key, from the log-probabilities of displayed letters.

    Single answers are scaled to sum to 1; those of `several` are independent. Missing letters have 0.
    """
    key_of = dict(zip(letters_of(displayed), displayed, strict=True))
    by_key = {key_of[letter]: float(np.exp(value)) for letter, value in logprobs.items()}
    total = 1.0 if several else sum(by_key.values())
    return {key: by_key.get(key, 0.0) / total for key in sorted(displayed)}


def _collect(
    entries: Sequence[tuple[dict[str, object], dict[str, float]]], number: Mapping[str, int]
) -> Probabilities:
    keys = tuple(entries[0][1])
    return Probabilities(
        keys=keys,
        probability=np.array([[probability[key] for key in keys] for _, probability in entries]),
        gold=np.array([[key in _gold(row) for key in keys] for row, _ in entries]),
        patient=np.array([number[str(row["patient_id"])] for row, _ in entries]),
        tier=int(str(entries[0][0]["tier"])),
        several=entries[0][0]["answer_type"] == "multi",
        parse_status=np.array([str(row["parse_status"]) for row, _ in entries]),
    )


def _gold(row: Mapping[str, object]) -> list[str]:
    gold = row["gold"]
    assert isinstance(gold, list)
    return gold


def _separation(items: Probabilities, times: Floats) -> dict[str, Statistic]:
    statistics: dict[str, Statistic] = {}
    for suffix, option in _options(items):
        positive = items.gold[:, option]
        curve = Curve.of(items.probability[:, option], positive, times)
        basis = Basis.of(items).of_two_classes(positive, items.patient)
        statistics[f"{AUROC}{suffix}"] = Statistic(auroc(curve), basis)
        of_precision = replace(basis, effective_items=float(basis.n_rarer_class or 0))
        statistics[f"{AVERAGE_PRECISION}{suffix}"] = Statistic(average_precision(curve), of_precision)
    return statistics


def _options(items: Probabilities) -> Iterator[tuple[str, int]]:
    """Options whose separation is scored: all of multi-select, the second of two, else none."""
    if items.several:
        yield from ((f".{key}", at) for at, key in enumerate(items.keys))
    elif len(items.keys) == 2:
        yield "", 1


def confidence_curves(answers: ConfidentAnswers, weights: Floats) -> dict[str, Statistic]:
    """Calibration and risk by metric.

    `calibration_error`, and of each tenth K of confidence that has answers `calibration.K.confidence` (their
    mean) and `calibration.K.accuracy`; `risk_area`, and `risk.C`, the share of wrong answers among the C %
    most confident.
    """
    blocks = [_block(answers, weights[at : at + _BLOCK]) for at in range(0, len(weights), _BLOCK)]
    values = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    basis = Basis.of(answers)
    statistics = {
        name: Statistic(value, basis) for name, value in values.items() if not name.startswith(f"{BIN}.")
    }
    for percent in COVERAGES:  # of the kept answers alone
        kept = replace(basis, effective_items=basis.n_items * percent / 100)
        statistics[f"{RISK}.{percent}"] = Statistic(values[f"{RISK}.{percent}"], kept)
    place = bins(answers.confidence)
    for at in np.unique(place):
        bin_basis = Basis.of(answers.where(place == at))
        for name in (f"{BIN}.{at + 1}.confidence", f"{BIN}.{at + 1}.accuracy"):
            statistics[name] = Statistic(values[name], bin_basis)
    return statistics


def _block(answers: ConfidentAnswers, weights: Floats) -> dict[str, Floats]:
    inputs = answers.confidence, answers.right, weights[:, answers.patient]
    count, confidence, right = calibration(*inputs)
    risk = risk_at([percent / 100 for percent in COVERAGES], *inputs)
    curves = {
        "calibration_error": calibration_error(*inputs),
        "risk_area": risk_area(*inputs),
    }
    curves |= {f"{RISK}.{percent}": risk[:, at] for at, percent in enumerate(COVERAGES)}
    for at in range(BINS):
        curves[f"{BIN}.{at + 1}.confidence"] = ratio(confidence[:, at], count[:, at])
        curves[f"{BIN}.{at + 1}.accuracy"] = ratio(right[:, at], count[:, at])
    return curves


@dataclass(frozen=True, slots=True)
class Curve:
    """Weights of positive and negative items at each distinct score, highest first: (resample, threshold)."""

    positive: Floats
    negative: Floats

    @staticmethod
    def of(scores: Floats, positive: Bools, times: Floats) -> "Curve":
        """Group items by score."""
        order = np.argsort(-scores, kind="stable")
        starts = np.flatnonzero(np.diff(-scores[order], prepend=-np.inf))
        times, positive = times[:, order], positive[order]
        return Curve(
            np.add.reduceat(times * positive, starts, axis=-1),
            np.add.reduceat(times * ~positive, starts, axis=-1),
        )


def auroc(curve: Curve) -> Floats:
    """Probability that a positive item scores above a negative one, ties half; NaN with one class only."""
    below = curve.negative.sum(axis=-1, keepdims=True) - np.cumsum(curve.negative, axis=-1)
    wins = (curve.positive * (below + 0.5 * curve.negative)).sum(axis=-1)
    return ratio(wins, curve.positive.sum(axis=-1) * curve.negative.sum(axis=-1))


def average_precision(curve: Curve) -> Floats:
    """Mean over positive items of the precision at their score; NaN without positive items."""
    true_positives = np.cumsum(curve.positive, axis=-1)
    precision = ratio(true_positives, true_positives + np.cumsum(curve.negative, axis=-1))
    return ratio(
        np.where(curve.positive > 0, curve.positive * precision, 0).sum(axis=-1), true_positives[..., -1]
    )


def calibration_error(confidence: Floats, right: Bools, times: Floats) -> Floats:
    """Expected calibration error: mean |accuracy - confidence| over BINS equal bins, weighted by items."""
    count, confidence_sum, right_sum = calibration(confidence, right, times)
    return ratio(np.abs(right_sum - confidence_sum).sum(axis=-1), count.sum(axis=-1))


def bins(confidence: Floats) -> Ints:
    """The bin of each confidence, 0 to BINS - 1; BINS - 1 holds 1."""
    return np.minimum((confidence * BINS).astype(np.int64), BINS - 1)


def calibration(confidence: Floats, right: Bools, times: Floats) -> tuple[Floats, Floats, Floats]:
    """Items, summed confidence and right items of each bin, as arrays (resample, bin)."""
    groups = (bins(confidence)[:, None] == np.arange(BINS)).astype(np.float64)
    return times @ groups, (times * confidence) @ groups, (times * right) @ groups


def risk_coverage(confidence: Floats, right: Bools, times: Floats) -> tuple[Floats, Floats]:
    """Coverage and error rate at each threshold, from most to least confident: (resample, threshold)."""
    curve = Curve.of(confidence, right, times)
    retained = np.cumsum(curve.positive + curve.negative, axis=-1)
    return ratio(retained, retained[..., -1:]), ratio(np.cumsum(curve.negative, axis=-1), retained)


def risk_at(coverages: Sequence[float], confidence: Floats, right: Bools, times: Floats) -> Floats:
    """Error rate among the most confident items that reach each coverage: (resample, coverage)."""
    coverage, risk = risk_coverage(confidence, right, times)
    enough = coverage[:, None, :] >= np.asarray(coverages)[:, None] - 1e-12
    return np.take_along_axis(risk, enough.argmax(axis=-1), axis=-1)


def risk_area(confidence: Floats, right: Bools, times: Floats) -> Floats:
    """Area under risk against coverage: 0 is best, uninformative confidence gives the error rate."""
    coverage, risk = risk_coverage(confidence, right, times)
    step = np.diff(coverage, axis=-1, prepend=0)
    return np.asarray(np.where(step > 0, step * risk, 0).sum(axis=-1))
