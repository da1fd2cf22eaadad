"""Scores from option probabilities, where the engine returns them (`answer_format=choice`)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cardiolens.protocol.tasks.legal import letters_of
from cardiolens.score.statistics import discrimination as measure
from cardiolens.score.statistics.bootstrap import resampling_weights
from cardiolens.score.statistics.confidence_curves import ConfidentAnswers, confidence_curves
from cardiolens.score.statistics.items import Bools, Floats, Ints
from cardiolens.score.statistics.outcomes import flag_incomplete, judged_shares
from cardiolens.score.statistics.rows import as_row
from cardiolens.score.statistics.statistic import Basis, Key, Statistic
from cardiolens.score.statistics.verdict_rows import cohort
from cardiolens.storage.schemas import SCORES
from cardiolens.storage.tables import from_rows

AUROC = "auroc"
AVERAGE_PRECISION = "average_precision"


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
    rows: list[dict[str, object]] = []
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
    return from_rows([flag_incomplete(row, shares) for row in rows], SCORES)


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
        curve = measure.Curve.of(items.probability[:, option], positive, times)
        basis = Basis.of(items).of_two_classes(positive, items.patient)
        statistics[f"{AUROC}{suffix}"] = Statistic(measure.auroc(curve), basis)
        of_precision = replace(basis, effective_items=float(basis.n_rarer_class or 0))
        statistics[f"{AVERAGE_PRECISION}{suffix}"] = Statistic(measure.average_precision(curve), of_precision)
    return statistics


def _options(items: Probabilities) -> Iterator[tuple[str, int]]:
    """Options whose separation is scored: all of multi-select, the second of two, else none."""
    if items.several:
        yield from ((f".{key}", at) for at, key in enumerate(items.keys))
    elif len(items.keys) == 2:
        yield "", 1
