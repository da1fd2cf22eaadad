"""Agreement between the judge of reasoning and others, over the steps that both judged."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from cardiolens.benchmarks.judges import ERRORS, Reasoning, StepVerdict
from cardiolens.score.statistics.bootstrap import Interval, cluster_interval, cluster_weights
from cardiolens.score.statistics.items import Floats
from cardiolens.score.statistics.metrics import ratio, weighted_agreement

JudgedSteps = tuple[StepVerdict, ...] | None

_DIFFERENT = 1.0 - np.eye(2)


def _has(error: str, step: StepVerdict) -> bool | None:
    return None if step.error_types is None else error in step.error_types


_LABELS: dict[str, Callable[[StepVerdict], bool | None]] = {
    "is_factual": lambda step: step.is_factual,
    "is_critical": lambda step: step.is_critical,
    **{f"error: {name}": partial(_has, name) for name in ERRORS},
}


@dataclass(frozen=True, slots=True)
class LabelAgreement:
    """Agreement on one label, with 95 % intervals over cases; NaN if undefined."""

    label: str
    n_steps: int
    n_cases: int
    n_given: int  # steps of which the others say it
    n_judge: int
    accuracy: Interval  # share of steps on which both say the same
    mcc: Interval
    kappa: Interval


def agreement(reasonings: Sequence[Reasoning], judgements: Sequence[JudgedSteps]) -> Iterator[LabelAgreement]:
    """Yield the agreement on every label, over the steps with verdicts of both the others and the judge.

    A step is left out of a kind of error where one of both did not say what is wrong with it.
    """
    pairs = [
        (judgement.case, given, judge)
        for judgement, verdicts in zip(reasonings, judgements, strict=True)
        if judgement.given is not None and verdicts is not None
        for given, judge in zip(judgement.given, verdicts, strict=True)
        if given is not None
    ]
    for label, of in _LABELS.items():
        said = [(case, of(given), of(judge)) for case, given, judge in pairs]
        yield _agreement(label, [(case, one, two) for case, one, two in said if None not in (one, two)])


def _agreement(label: str, said: Sequence[tuple[int, bool | None, bool | None]]) -> LabelAgreement:
    places = {case: place for place, case in enumerate(sorted({case for case, _, _ in said}))}
    weights = cluster_weights(len(places))
    table = np.zeros((len(places), 2, 2))  # case, others, judge
    for case, given, judge in said:
        table[places[case], int(bool(given)), int(bool(judge))] += 1
    counts: Floats = np.einsum("rp,pij->rij", weights, table)
    total = counts[0]
    shares = ratio(np.trace(counts, axis1=-2, axis2=-1), counts.sum(axis=(-2, -1)))
    return LabelAgreement(
        label=label,
        n_steps=len(said),
        n_cases=len(places),
        n_given=int(total[1].sum()),
        n_judge=int(total[:, 1].sum()),
        accuracy=cluster_interval(shares, len(places)),
        mcc=cluster_interval(_mcc(counts), len(places)),
        kappa=cluster_interval(weighted_agreement(counts, _DIFFERENT), len(places)),
    )


def _mcc(counts: Floats) -> Floats:
    """Return Matthews' correlation of tables (..., 2, 2); NaN if one side has a single class."""
    (no_no, no_yes), (yes_no, yes_yes) = np.moveaxis(counts, (-2, -1), (0, 1))
    rows, columns = counts.sum(axis=-1), counts.sum(axis=-2)
    spread = np.sqrt(rows[..., 0] * rows[..., 1] * columns[..., 0] * columns[..., 1])
    return ratio(no_no * yes_yes - no_yes * yes_no, spread)
