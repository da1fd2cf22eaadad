"""Agreement of people: of two who verify, by batch, subtask and drafter; and of all who read (human ceiling).

Reading compares people with each other, never with reference answers, so unverified questions are sufficient.
"Cannot tell" is an answer of its own. A question that a person did not read is missing and forms no pair.

Kappa over several subtasks is pooled over their tables: 1 - sum of observed / sum of expected disagreement,
with expectations within each subtask. A single table of all answers would underestimate chance agreement.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic_core import to_jsonable_python

from cardiolens.curation.review.queue import Key, Line, Outcome, Reviews
from cardiolens.curation.review.review_items import Item
from cardiolens.score.statistics.bootstrap import Interval, cluster_interval, cluster_weights
from cardiolens.score.statistics.hypothesis_tests import wilson
from cardiolens.score.statistics.items import Floats
from cardiolens.score.statistics.metrics import ratio

KAPPA, ACCEPTED, ACCEPTED_LOW = 0.80, 0.95, 0.90
_ALL = "all"  # subtasks
FEWEST = 35  # items of a batch: with fewer, the lower bound stays below 90 % even if all are accepted

# `small`: all criteria are met that so few items can meet; it counts, and is called what it is.
Decision = Literal["open", "pass", "small", "fail"]


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

    def line(self) -> str:
        """Return the line for the terminal."""
        numbers = f"{self.n_settled}/{self.n_items} settled, {self.n_pairs} pairs, {self.n_patients} patients"
        agreed = f"kappa {_words(self.kappa)}, AC1 {_words(self.ac1)}, accepted {_words(self.accepted)}"
        why = f" ({'; '.join(self.why)})" if self.why else ""
        return f"{self.name}: {numbers}; {agreed}: {self.decision}{why}"


class Agreements(NamedTuple):
    """Agreement by batch, which decides, by subtask, and by who drafted the questions."""

    batches: list[Agreement]
    subtasks: list[Agreement]
    marks: list[Agreement]


def agreements(items: Collection[Item], outcomes: Mapping[str, Outcome]) -> Agreements:
    """Return agreement on items, from their outcomes by digest."""

    def by(name_of: Callable[[Item], str]) -> list[Agreement]:
        groups: dict[str, list[Item]] = defaultdict(list)
        for item in items:
            groups[name_of(item)].append(item)
        return [_agreement(name, group, outcomes) for name, group in groups.items() if name]

    marks = sorted(by(_mark), key=lambda row: row.name)
    return Agreements(by(lambda item: item.batch), by(lambda item: item.subtask.id), marks)


def _mark(item: Item) -> str:
    mark = item.question.verification.get("drafted_by")
    return f"drafted by {mark}" if mark else ""


def _agreement(name: str, items: Sequence[Item], outcomes: Mapping[str, Outcome]) -> Agreement:
    pairs = [pair for item in items if (pair := _pair(item, outcomes[item.digest].firsts)) is not None]
    settled = [final for item in items if (final := outcomes[item.digest].final) is not None]
    n_accepted = sum(line.verdict == "accept" for line in settled)
    kappa, ac1 = intervals(pairs)
    accepted = wilson(n_accepted, len(settled))
    decision, why = ("open", ()) if len(settled) < len(items) else _decision(pairs, kappa, ac1, accepted)
    return Agreement(
        name=name,
        n_items=len(items),
        n_settled=len(settled),
        n_pairs=len(pairs),
        n_patients=len({pair.patient for pair in pairs}),
        n_accepted=n_accepted,
        kappa=kappa,
        ac1=ac1,
        accepted=accepted,
        decision=decision,
        why=why,
    )


def _decision(
    pairs: Sequence[Pair], kappa: Interval, ac1: Interval, accepted: Interval
) -> tuple[Decision, tuple[str, ...]]:
    """Return the decision on a settled batch, and the criteria that it does not meet.

    If kappa is undefined, only a difference in answers fails it. A small batch is decided by AC1, because a
    single difference moves its kappa by tenths.
    """
    differ = any(pair.answers[0] != pair.answers[1] for pair in pairs)
    rules = (
        (differ if np.isnan(kappa.value) else kappa.value < KAPPA, f"kappa below {KAPPA:.2f}"),
        (accepted.value < ACCEPTED, f"accepted below {ACCEPTED:.0%}"),
        (accepted.low < ACCEPTED_LOW, f"lower bound of accepted below {ACCEPTED_LOW:.0%}"),
    )
    why = tuple(words for wrong, words in rules if wrong)
    if not why:
        return "pass", ()
    is_small = len(pairs) < FEWEST and ac1.value >= KAPPA and accepted.value >= ACCEPTED
    return ("small" if is_small else "fail"), why


def _pair(item: Item, firsts: Sequence[Line]) -> Pair | None:
    """Return the pair of an item, or None before two readers decided."""
    if len(firsts) < 2:
        return None
    first, second = (answer_of(item, line) for line in firsts)
    return Pair(item.patient, item.subtask.id, (first, second))


def answer_of(item: Item, line: Line) -> tuple[str, ...]:
    """Return the answer of a decision."""
    return item.proposal if line.verdict == "accept" else line.answer


def intervals(pairs: Sequence[Pair]) -> tuple[Interval, Interval]:
    """Return kappa and Gwet's AC1, pooled over subtasks, with bootstrap intervals by patient."""
    patients, weights = _resampled(pairs)
    observed, by_margins, by_shares = np.zeros((3, len(weights)))
    for table in _tables(pairs, patients):
        parts = _disagreement(np.einsum("rp,pij->rij", weights, table))
        observed, by_margins, by_shares = observed + parts[0], by_margins + parts[1], by_shares + parts[2]
    return (
        cluster_interval(1 - ratio(observed, by_margins), len(patients)),
        cluster_interval(1 - ratio(observed, by_shares), len(patients)),
    )


def _resampled(pairs: Sequence[Pair]) -> tuple[Mapping[str, int], Floats]:
    """Return the place of each patient, and how often each resample draws them; of one patient none."""
    patients = {name: place for place, name in enumerate(sorted({pair.patient for pair in pairs}))}
    return patients, cluster_weights(len(patients))


def _tables(pairs: Sequence[Pair], patients: Mapping[str, int]) -> list[Floats]:
    """Return the table of each subtask: (patient, category, category)."""
    by_subtask: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        by_subtask[pair.subtask].append(pair)
    tables = []
    for of_subtask in by_subtask.values():
        place_of: dict[Hashable, int] = {}
        for answer in (answer for pair in of_subtask for answer in pair.answers):
            place_of.setdefault(answer, len(place_of))
        table = np.zeros((len(patients), len(place_of), len(place_of)))
        for pair in of_subtask:
            first, second = pair.answers
            table[patients[pair.patient], place_of[first], place_of[second]] += 1
        tables.append(table)
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


def as_record(row: object) -> dict[str, Any]:
    """Return a row of agreement as JSON values, with null for undefined numbers."""
    record: dict[str, Any] = to_jsonable_python(row, inf_nan_mode="null")
    return record


def _words(interval: Interval) -> str:
    """Return an interval as the terminal shows it."""
    return f"{interval.value:.2f} [{interval.low:.2f}, {interval.high:.2f}]"


@dataclass(frozen=True, slots=True)
class ReaderCounts:
    """Counts of questions that one person read or missed."""

    reader: str
    n_items: int
    n_read: int
    n_cannot_tell: int
    n_barred: int  # not read because verification showed this person the answer
    n_missing: int
    seconds_median: float

    def line(self) -> str:
        """Return the line for the terminal."""
        barred = f", {self.n_barred} barred since they had been shown the answer" if self.n_barred else ""
        read = f"{self.n_read}/{self.n_items} read, {self.n_missing} missing{barred}"
        seconds = f"{self.seconds_median:.1f} s a question (median)"
        return f"{self.reader}: {read}, {self.n_cannot_tell} cannot tell; {seconds}"


@dataclass(frozen=True, slots=True)
class BetweenReaders:
    """Agreement between pairs of people on questions that both read."""

    subtask: str
    readers: tuple[str, ...]
    n_pairs: int
    n_patients: int
    same: Interval
    kappa: Interval
    ac1: Interval

    def line(self) -> str:
        """Return the line for the terminal."""
        numbers = f"{self.n_pairs} pairs, {self.n_patients} patients"
        agreed = f"same answer {_words(self.same)}, kappa {_words(self.kappa)}, AC1 {_words(self.ac1)}"
        return f"{self.subtask} ({', '.join(self.readers)}): {numbers}; {agreed}"


def people_of(items: Mapping[Key, Item], reviews: Reviews) -> list[ReaderCounts]:
    """Return the counts of everyone who read a question, sorted by name."""
    people = []
    for reader in sorted(name for name, mode in reviews.by_reader if mode == "read"):
        read = {key: line for key, line in reviews.of_reader(reader, "read").items() if key in items}
        n_barred = sum((reader, qa_id) in reviews.seen for qa_id, _ in items.keys() - read.keys())
        counts = ReaderCounts(
            reader=reader,
            n_items=len(items),
            n_read=len(read),
            n_cannot_tell=sum(not line.answer for line in read.values()),
            n_barred=n_barred,
            n_missing=len(items) - len(read) - n_barred,
            seconds_median=float(np.median([line.seconds for line in read.values()] or [0])),
        )
        people += [counts] if read else []
    return people


def ceiling(items: Mapping[Key, Item], reviews: Reviews) -> list[BetweenReaders]:
    """Return agreement of all pairs, of each pair, and of all pairs by subtask."""
    by_pair: dict[tuple[str, str], list[Pair]] = defaultdict(list)
    by_subtask: dict[str, list[Pair]] = defaultdict(list)
    for key, item in items.items():
        lines = reviews.of("read", key)
        for first, second in combinations(sorted(lines), 2):
            table = f"{item.subtask.id} {first} {second}"  # chance agreement is per pair and subtask
            answers = tuple(sorted(lines[first].answer)), tuple(sorted(lines[second].answer))
            pair = Pair(item.patient, table, answers)
            by_pair[first, second].append(pair)
            by_subtask[item.subtask.id].append(pair)
    everyone = tuple(sorted({reader for readers in by_pair for reader in readers}))
    every_pair = [pair for pairs in by_subtask.values() for pair in pairs]
    rows = [_between(_ALL, everyone, every_pair)] if by_pair else []
    if len(by_pair) > 1:
        rows += [_between(_ALL, readers, pairs) for readers, pairs in sorted(by_pair.items())]
    return rows + [_between(subtask, everyone, pairs) for subtask, pairs in by_subtask.items()]


def _between(subtask: str, readers: tuple[str, ...], pairs: Sequence[Pair]) -> BetweenReaders:
    patients, weights = _resampled(pairs)
    counts = np.zeros((len(patients), 2))
    for pair in pairs:
        counts[patients[pair.patient]] += (pair.answers[0] == pair.answers[1], 1)
    sums = weights @ counts
    same = cluster_interval(ratio(sums[:, 0], sums[:, 1]), len(patients))
    return BetweenReaders(subtask, readers, len(pairs), len(patients), same, *intervals(pairs))


def lines_of(persons: Sequence[ReaderCounts], rows: Sequence[BetweenReaders]) -> list[dict[str, Any]]:
    """Return the lines of the file: people, then agreement; null for undefined numbers."""
    lines = [{"schema": "human-reader-1", **as_record(person)} for person in persons]
    return lines + [{"schema": "human-agreement-1", **as_record(row)} for row in rows]
