"""Agreement of two readers blind to each other, by subtask and batch, and the batches that pass.

Kappa over several subtasks is pooled over their tables: 1 - sum of observed / sum of expected disagreement,
with expectations within each subtask. A single table of all answers would underestimate chance agreement.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from cardiolens.curation.review.ledger import Line
from cardiolens.curation.review.queue import Outcome
from cardiolens.curation.review.review_items import Item
from cardiolens.score.statistics.bootstrap import Interval, percentile, resampling_weights
from cardiolens.score.statistics.hypothesis_tests import wilson
from cardiolens.score.statistics.items import Floats
from cardiolens.score.statistics.metrics import ratio

RESAMPLES, SEED = 2000, 2026
KAPPA, ACCEPTED, ACCEPTED_LOW = 0.80, 0.95, 0.90
FEWEST = 35  # items of a batch: with fewer, the lower bound stays below 90 % even if all are accepted
ALL = "all"

# `small`: all criteria are met that so few items can meet; it counts, and is called what it is.
Decision = Literal["open", "pass", "small", "fail"]
_LOW = f"lower bound of accepted below {ACCEPTED_LOW:.0%}"
Tables = Mapping[str, Floats]  # by subtask: (patient, category, category)


@dataclass(frozen=True, slots=True)
class Pair:
    """Answers of two readers of one item; () for a reader without an answer."""

    patient: str
    subtask: str
    answers: tuple[Hashable, Hashable]


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement on a group of items: kappa and AC1 of answers, and the share accepted."""

    name: str
    n_items: int
    n_settled: int
    n_pairs: int
    n_patients: int
    n_accepted: int
    kappa: Interval
    ac1: Interval
    accepted: Interval
    decision: Decision
    why: tuple[str, ...] = ()


def agreements(
    items: Collection[Item], outcome_of: Callable[[Item], Outcome]
) -> tuple[list[Agreement], list[Agreement]]:
    """Return agreement by batch, which decides, and by subtask, which shows where readers differ."""
    batches: dict[str, list[Item]] = defaultdict(list)
    subtasks: dict[str, list[Item]] = defaultdict(list)
    outcomes = {item.digest: outcome_of(item) for item in items}
    for item in items:
        batches[item.batch].append(item)
        subtasks[item.subtask.id].append(item)
    return (
        [_agreement(name, batch_pairs, outcomes) for name, batch_pairs in batches.items()],
        [_agreement(name, subtask_pairs, outcomes) for name, subtask_pairs in subtasks.items()],
    )


def agreements_by_mark(items: Collection[Item], outcome_of: Callable[[Item], Outcome]) -> list[Agreement]:
    """Return agreement by who drafted the questions, which shows how many of each mark are wrong."""
    marks: dict[str, list[Item]] = defaultdict(list)
    for item in items:
        if mark := item.question.verification.get("drafted_by"):
            marks[f"drafted by {mark}"].append(item)
    outcomes = {item.digest: outcome_of(item) for item in items}
    return [_agreement(name, of_mark, outcomes) for name, of_mark in sorted(marks.items())]


def _agreement(name: str, items: Sequence[Item], outcomes: Mapping[str, Outcome]) -> Agreement:
    pairs = [pair_of(item, outcomes[item.digest].firsts) for item in items]
    both = [pair for pair in pairs if pair is not None]
    finals = [outcomes[item.digest].final for item in items]
    settled = [line for line in finals if line is not None]
    n_accepted = sum(line.verdict == "accept" for line in settled)
    kappa, ac1 = intervals(both)
    accepted = wilson(n_accepted, len(settled))
    why = _failures(kappa, accepted, both) if len(settled) == len(items) else ()
    decision: Decision = "open" if len(settled) < len(items) else "fail" if why else "pass"
    if decision == "fail" and len(items) < FEWEST and ac1.value >= KAPPA and accepted.value >= ACCEPTED:
        decision, why = "small", _small(len(items), accepted, kappa)
    return Agreement(
        name=name,
        n_items=len(items),
        n_settled=len(settled),
        n_pairs=len(both),
        n_patients=len({pair.patient for pair in both}),
        n_accepted=n_accepted,
        kappa=kappa,
        ac1=ac1,
        accepted=accepted,
        decision=decision,
        why=why,
    )


def _failures(kappa: Interval, accepted: Interval, pairs: Sequence[Pair]) -> tuple[str, ...]:
    """Return the failed criteria of a batch. If kappa is undefined, only a difference in answers fails it."""
    differ = any(pair.answers[0] != pair.answers[1] for pair in pairs)
    rules = (
        (not kappa.value >= KAPPA if not np.isnan(kappa.value) else differ, f"kappa below {KAPPA:.2f}"),
        (accepted.value < ACCEPTED, f"accepted below {ACCEPTED:.0%}"),
        (accepted.low < ACCEPTED_LOW, _LOW),
    )
    return tuple(words for wrong, words in rules if wrong)


def _small(n_items: int, accepted: Interval, kappa: Interval) -> tuple[str, ...]:
    """Return what a small batch shows; AC1 stands for kappa, which a single difference moves by tenths."""
    reasons = (f"{n_items} questions show only that {accepted.low:.0%} would be accepted",)
    return (*reasons, f"AC1 stands for kappa, which is below {KAPPA:.2f}") if kappa.value < KAPPA else reasons


def pair_of(item: Item, firsts: Sequence[Line]) -> Pair | None:
    """Return the pair of an item, or None before two readers decided."""
    if len(firsts) < 2:
        return None
    first, second = firsts
    return Pair(item.patient, item.subtask.id, (_answer(item, first), _answer(item, second)))


def _answer(item: Item, line: Line) -> tuple[str, ...]:
    return item.proposal if line.verdict == "accept" else line.answer


def intervals(pairs: Sequence[Pair]) -> tuple[Interval, Interval]:
    """Return kappa and Gwet's AC1, pooled over subtasks, with bootstrap intervals by patient."""
    patients = {name: place for place, name in enumerate(sorted({pair.patient for pair in pairs}))}
    weights = resampling_weights(len(patients), RESAMPLES if len(patients) > 1 else 0, SEED)
    observed, by_margins, by_shares = (np.zeros(len(weights)) for _ in range(3))
    for table in _tables(pairs, patients).values():
        counts: Floats = np.einsum("rp,pij->rij", weights, table)
        parts = _disagreement(counts)
        observed, by_margins, by_shares = observed + parts[0], by_margins + parts[1], by_shares + parts[2]
    n = float(len(patients)) if len(patients) > 1 else np.inf
    return (
        percentile(1 - ratio(observed, by_margins), patients=n),
        percentile(1 - ratio(observed, by_shares), patients=n),
    )


def _tables(pairs: Sequence[Pair], patients: Mapping[str, int]) -> Tables:
    by_subtask: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        by_subtask[pair.subtask].append(pair)
    tables = {}
    for subtask, subtask_pairs in by_subtask.items():
        labels = dict.fromkeys(answer for pair in subtask_pairs for answer in pair.answers)
        place_of = {label: place for place, label in enumerate(labels)}
        table = np.zeros((len(patients), len(place_of), len(place_of)))
        for pair in subtask_pairs:
            first, second = pair.answers
            table[patients[pair.patient], place_of[first], place_of[second]] += 1
        tables[subtask] = table
    return tables


def _disagreement(counts: Floats) -> tuple[Floats, Floats, Floats]:
    """Return disagreements: observed, expected by margins (Cohen 1960) and by mean shares (Gwet 2008)."""
    total = counts.sum(axis=(-2, -1))
    rows, columns = counts.sum(axis=-1), counts.sum(axis=-2)
    observed = total - np.trace(counts, axis1=-2, axis2=-1)
    by_margins = total - np.nan_to_num(ratio((rows * columns).sum(axis=-1), total))
    shares = np.nan_to_num(ratio(rows + columns, 2 * total[..., None]))
    n_others = max(counts.shape[-1] - 1, 1)
    by_shares = total * (1 - (shares * (1 - shares)).sum(axis=-1) / n_others)
    return observed, by_margins, by_shares


def as_record(row: Any) -> dict[str, Any]:
    """Return a row of agreement as JSON values, with null for undefined numbers."""
    return {name: _without_nan(value) for name, value in asdict(row).items()}


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nan(part) for name, part in value.items()}
    return None if isinstance(value, float) and np.isnan(value) else value


def in_words(interval: Interval) -> str:
    """Return an interval as the terminal shows it."""
    return f"{interval.value:.2f} [{interval.low:.2f}, {interval.high:.2f}]"
