"""Scores from option probabilities: separation, calibration and risk (`answer_format=choice`).

Measures take one score per item; `times[resample, item]` is how often a resample holds the item. Ties share a
threshold.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cardiolens.protocol.tasks.legal import letters_of
from cardiolens.score.statistics.bootstrap import Basis
from cardiolens.score.statistics.item_scores import ItemScores, judged_answers
from cardiolens.score.statistics.items import Bools, Floats, Ints
from cardiolens.score.statistics.metrics import ratio
from cardiolens.score.statistics.statistic import Row, Statistic

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

    def basis(self, selected: Bools | slice = slice(None)) -> Basis:
        """Count the answers, or some of them."""
        return Basis.of(self.patient[selected], self.parse_status[selected])


def confidence_scores(arm: str, rows: pa.Table, scores: ItemScores) -> Iterator[Row]:
    """AUROC and average precision of yes-no subtasks and of each option of multi-select, calibration, risk.

    `rows` are the verdicts of an arm, with the options as displayed and their log-probabilities. Metrics are
    `auroc`, `average_precision` (of the second of two options; with `.KEY` of one option), and those of
    `confidence_curves` of each subtask with one right option and of all such of tier 1 together. Items
    without probabilities are left out.
    """
    weights = scores.sampling.weights
    with_probabilities = judged_answers(rows.filter(pc.is_valid(rows["option_logprobs"])))
    items = [row for row in with_probabilities if row["option_logprobs"] and row["option_keys"]]
    items.sort(key=lambda row: (row["subtask"], row["qa_id"]))
    confident: dict[str, list[tuple[Any, ...]]] = {}  # columns of ConfidentAnswers by subtask
    for subtask, group in groupby(items, key=lambda row: str(row["subtask"])):
        of_subtask = list(group)
        first, patient = of_subtask[0], scores.places(of_subtask)
        several = first["answer_type"] == "multi"
        by_key = [
            of_options(dict(row["option_logprobs"]), row["option_keys"], several=several)
            for row in of_subtask
        ]
        keys = sorted({key for of_item in by_key for key in of_item})
        probability = np.array([[of_item.get(key, 0.0) for key in keys] for of_item in by_key])
        gold = np.array([[key in row["gold"] for key in keys] for row in of_subtask])
        status = np.array([row["parse_status"] for row in of_subtask], np.str_)
        scope = f"subtask:{subtask}"
        # all options of multi-select, the second of two, else none
        options = enumerate(keys) if several else [(1, "")] if len(keys) == 2 else ()
        for at, key in options:
            shown = np.array([keys[at] in of_item for of_item in by_key])
            positive, of_shown = gold[shown, at], patient[shown]
            curve = Curve.of(probability[shown, at], positive, weights[:, of_shown])
            of_classes = Basis.of(of_shown, status[shown]).of_two_classes(positive, of_shown)
            of_precision = replace(of_classes, effective_items=float(of_classes.n_rarer_class or 0))
            suffix = f".{key}" if key else ""
            yield scores.row(arm, (f"{AUROC}{suffix}", scope), Statistic(auroc(curve), of_classes))
            precision = Statistic(average_precision(curve), of_precision)
            yield scores.row(arm, (f"{AVERAGE_PRECISION}{suffix}", scope), precision)
        if not several:
            best = probability.argmax(axis=1)  # ties go to the earlier option
            right = gold[np.arange(len(best)), best]
            answers = probability.max(axis=1), right, patient, status
            for place in (scope, "tier:1") if first["tier"] == 1 else (scope,):
                confident.setdefault(place, []).append(answers)
    for scope, parts in sorted(confident.items()):
        together = ConfidentAnswers(*map(np.concatenate, zip(*parts, strict=True)))
        for name, statistic in sorted(confidence_curves(together, weights).items()):
            yield scores.row(arm, (name, scope), statistic)


def of_options(logprobs: Mapping[str, float], displayed: Sequence[str], *, several: bool) -> dict[str, float]:
    """Probability of each original key, from the log-probabilities of displayed letters.

    Single answers are scaled to sum to 1; those of `several` are independent. Missing letters have 0.
    """
    key_of = dict(zip(letters_of(displayed), displayed, strict=True))
    by_key = {key_of[letter]: float(np.exp(value)) for letter, value in logprobs.items()}
    total = 1.0 if several else sum(by_key.values())
    return {key: by_key.get(key, 0.0) / total for key in sorted(displayed)}


def confidence_curves(answers: ConfidentAnswers, weights: Floats) -> dict[str, Statistic]:
    """Calibration and risk by metric.

    `calibration_error`: mean |accuracy - confidence| over BINS equal bins, weighted by items; of each tenth K
    of confidence that has answers `calibration.K.confidence` (their mean) and `calibration.K.accuracy`.
    `risk_area`: under risk against coverage, 0 is best, uninformative confidence gives the error rate; and
    `risk.C`, the share of wrong answers among the C % most confident.
    """
    blocks = [_curves(answers, weights[at : at + _BLOCK]) for at in range(0, len(weights), _BLOCK)]
    values = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    bases = dict.fromkeys(("calibration_error", "risk_area"), basis := answers.basis())
    for percent in COVERAGES:  # of the kept answers alone
        bases[f"{RISK}.{percent}"] = replace(basis, effective_items=basis.n_items * percent / 100)
    place = _bins(answers.confidence)
    for at in np.unique(place):
        of_bin = answers.basis(place == at)
        bases |= {f"{BIN}.{at + 1}.{name}": of_bin for name in ("confidence", "accuracy")}
    return {name: Statistic(values[name], of_values) for name, of_values in bases.items()}


def _bins(confidence: Floats) -> Ints:
    """The bin of each confidence, 0 to BINS - 1; the last one holds 1."""
    return np.minimum((confidence * BINS).astype(np.int64), BINS - 1)


def _curves(answers: ConfidentAnswers, weights: Floats) -> dict[str, Floats]:
    """The values of some resamples by metric."""
    confidence, right, times = answers.confidence, answers.right, weights[:, answers.patient]
    in_bin = (_bins(confidence)[:, None] == np.arange(BINS)).astype(np.float64)
    count, sure, hits = (times * values @ in_bin for values in (1.0, confidence, right))
    curve = Curve.of(confidence, right, times)  # risk and coverage at each threshold, from the most confident
    retained = np.cumsum(curve.positive + curve.negative, axis=-1)
    coverage, risk = ratio(retained, retained[..., -1:]), ratio(np.cumsum(curve.negative, axis=-1), retained)
    step = np.diff(coverage, axis=-1, prepend=0)
    values = {
        "calibration_error": ratio(np.abs(hits - sure).sum(axis=-1), count.sum(axis=-1)),
        "risk_area": np.asarray(np.where(step > 0, step * risk, 0).sum(axis=-1)),
    }
    for percent in COVERAGES:
        first = (coverage >= percent / 100 - 1e-12).argmax(axis=-1)[:, None]
        values[f"{RISK}.{percent}"] = np.take_along_axis(risk, first, axis=-1)[:, 0]
    for at in range(BINS):
        values[f"{BIN}.{at + 1}.confidence"] = ratio(sure[:, at], count[:, at])
        values[f"{BIN}.{at + 1}.accuracy"] = ratio(hits[:, at], count[:, at])
    return values


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
