"""Scores of option probabilities, where the engine gave them (`answer_format=choice`)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.stats import discrimination as measure
from cardiolens.stats.bootstrap import resampling_weights
from cardiolens.stats.items import Bools, Floats, Ints, cohort
from cardiolens.stats.rows import as_row
from cardiolens.stats.statistic import Basis, Key, Statistic
from cardiolens.tables import SCORES, from_rows


@dataclass(frozen=True, slots=True)
class Probabilities:
    """Option probabilities of the judged items of one arm and subtask."""

    keys: tuple[str, ...]  # original option keys
    probability: Floats  # (item, option)
    gold: Bools  # (item, option)
    patient: Ints
    several: bool  # options may be true together
    parse_status: np.ndarray

    @property
    def confidence(self) -> Floats:
        """Of the most probable option."""
        return np.asarray(self.probability.max(axis=1))

    @property
    def right(self) -> Bools:
        """Whether the most probable option is the gold one; ties to the earlier."""
        best = self.probability.argmax(axis=1)
        return np.asarray(self.gold[np.arange(len(best)), best])


def confidence_scores(
    verdicts: pa.Table, requests: pa.Table, completions: pa.Table, resamples: int, seed: int
) -> pa.Table:
    """AUROC and average precision of yes-no subtasks and of each option of multi-select, calibration, risk.

    Rows as those of `scores`, with metrics `auroc`, `average_precision` (of the second of two options; with
    `.KEY` of one option), `calibration_error`, `risk_area`; items without probabilities stay out.
    """
    patients = cohort(verdicts)
    weights = resampling_weights(len(patients), resamples, seed)
    method = f"expanded percentile cluster bootstrap, B={resamples}, seed {seed}"
    rows = [
        {"arm_id": arm} | as_row((metric, f"subtask:{subtask}"), Statistic(values, Basis.of(items)), method)
        for (arm, subtask), items in probabilities(verdicts, requests, completions, patients).items()
        for metric, values in sorted(_scores(items, weights[:, items.patient]).items())
    ]
    return from_rows(rows, SCORES)


def probabilities(
    verdicts: pa.Table, requests: pa.Table, completions: pa.Table, patients: Sequence[str]
) -> dict[Key, Probabilities]:
    """Items with option probabilities by (arm, subtask), sorted."""
    given = {
        row["request_key"]: row["option_logprobs"]
        for row in completions.select(["request_key", "option_logprobs"]).to_pylist()
        if row["option_logprobs"]
    }
    shown = {
        (row["arm_id"], row["qa_id"]): row["option_keys"]
        for row in requests.select(["arm_id", "qa_id", "option_keys"]).to_pylist()
    }
    judged = pc.and_(pc.equal(verdicts["channel"], "answer"), pc.equal(verdicts["status"], "judged"))
    rows = verdicts.filter(judged).sort_by([(name, "ascending") for name in ("arm_id", "subtask", "qa_id")])
    groups: dict[Key, list[tuple[dict[str, object], dict[str, float]]]] = {}
    for row in rows.to_pylist():
        if row["request_key"] in given and shown.get((row["arm_id"], row["qa_id"])):
            marginal = marginals(dict(given[row["request_key"]]), shown[row["arm_id"], row["qa_id"]])
            groups.setdefault((row["arm_id"], row["subtask"]), []).append((row, marginal))
    number = {patient: at for at, patient in enumerate(patients)}
    return {key: _collect(entries, number) for key, entries in groups.items()}


def marginals(logprobs: Mapping[str, float], shown: Sequence[str]) -> dict[str, float]:
    """Probability of each original key from log-probabilities of replies in displayed letters ("B", "A, C").

    Probabilities are scaled to sum to 1 over the replies given; an option's is that of all replies with it.
    """
    highest = max(logprobs.values())
    weight = {reply: float(np.exp(value - highest)) for reply, value in logprobs.items()}
    found = dict.fromkeys(sorted(shown), 0.0)
    for reply, share in weight.items():
        for letter in reply.replace(",", " ").split():
            found[shown[ord(letter) - ord("A")]] += share / sum(weight.values())
    return found


def _collect(
    entries: Sequence[tuple[dict[str, object], dict[str, float]]], number: Mapping[str, int]
) -> Probabilities:
    keys = tuple(entries[0][1])
    return Probabilities(
        keys=keys,
        probability=np.array([[marginal[key] for key in keys] for _, marginal in entries]),
        gold=np.array([[key in _gold(row) for key in keys] for row, _ in entries]),
        patient=np.array([number[str(row["patient_id"])] for row, _ in entries]),
        several=entries[0][0]["answer_type"] == "multi",
        parse_status=np.array([str(row["parse_status"]) for row, _ in entries]),
    )


def _gold(row: Mapping[str, object]) -> list[str]:
    gold = row["gold"]
    assert isinstance(gold, list)
    return gold


def _scores(items: Probabilities, times: Floats) -> dict[str, Floats]:
    found: dict[str, Floats] = {}
    for suffix, option in _options(items):
        curve = measure.Curve.of(items.probability[:, option], items.gold[:, option], times)
        found[f"auroc{suffix}"] = measure.auroc(curve)
        found[f"average_precision{suffix}"] = measure.average_precision(curve)
    if not items.several:
        found["calibration_error"] = measure.calibration_error(items.confidence, items.right, times)
        found["risk_area"] = measure.risk_area(items.confidence, items.right, times)
    return found


def _options(items: Probabilities) -> Iterator[tuple[str, int]]:
    """What is separated: each option of multi-select, the second of two options, else nothing."""
    if items.several:
        yield from ((f".{key}", at) for at, key in enumerate(items.keys))
    elif len(items.keys) == 2:
        yield "", 1
