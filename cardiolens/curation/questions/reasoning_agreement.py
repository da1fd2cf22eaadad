"""Agreement between the judge of reasoning and people, over the steps that both judged."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from cardiolens.curation.questions.reasoning import ERRORS, Reasoning, StepVerdict
from cardiolens.score.statistics.bootstrap import Interval, percentile, resampling_weights
from cardiolens.score.statistics.items import Floats
from cardiolens.score.statistics.metrics import ratio, weighted_agreement

RESAMPLES, SEED = 2000, 2026
JudgedSteps = tuple[StepVerdict, ...] | None

_DIFFERENT = 1.0 - np.eye(2)


def _has(error: str, step: StepVerdict) -> bool:
    return error in step.error_types


_LABELS: dict[str, Callable[[StepVerdict], bool]] = {
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
    n_people: int  # steps of which people say it
    n_judge: int
    accuracy: Interval  # share of steps on which both say the same
    mcc: Interval
    kappa: Interval


def agreement(reasonings: Sequence[Reasoning], judgements: Sequence[JudgedSteps]) -> Iterator[LabelAgreement]:
    """Yield the agreement on every label, over the steps with verdicts of both people and judge."""
    pairs = [
        (judgement.case, person, judge)
        for judgement, verdicts in zip(reasonings, judgements, strict=True)
        if judgement.people is not None and verdicts is not None
        for person, judge in zip(judgement.people, verdicts, strict=True)
    ]
    places = {case: place for place, case in enumerate(sorted({case for case, _, _ in pairs}))}
    weights = resampling_weights(len(places), RESAMPLES if len(places) > 1 else 0, SEED)
    for label, of in _LABELS.items():
        table = np.zeros((len(places), 2, 2))  # case, people, judge
        for case, person, judge in pairs:
            table[places[case], int(of(person)), int(of(judge))] += 1
        counts: Floats = np.einsum("rp,pij->rij", weights, table)
        total = counts[0]
        yield LabelAgreement(
            label=label,
            n_steps=len(pairs),
            n_cases=len(places),
            n_people=int(total[1].sum()),
            n_judge=int(total[:, 1].sum()),
            accuracy=_interval(
                ratio(np.trace(counts, axis1=-2, axis2=-1), counts.sum(axis=(-2, -1))), places
            ),
            mcc=_interval(_mcc(counts), places),
            kappa=_interval(weighted_agreement(counts, _DIFFERENT), places),
        )


def _mcc(counts: Floats) -> Floats:
    """Return Matthews' correlation of tables (..., 2, 2); NaN if one side has a single class."""
    (no_no, no_yes), (yes_no, yes_yes) = np.moveaxis(counts, (-2, -1), (0, 1))
    rows, columns = counts.sum(axis=-1), counts.sum(axis=-2)
    spread = np.sqrt(rows[..., 0] * rows[..., 1] * columns[..., 0] * columns[..., 1])
    return ratio(no_no * yes_yes - no_yes * yes_no, spread)


def _interval(values: Floats, places: dict[int, int]) -> Interval:
    return percentile(values, patients=len(places) if len(places) > 1 else np.inf)
