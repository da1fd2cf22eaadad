"""Human ceiling: agreement of people who read the same questions, as models do, with intervals.

Only agreement is measured, never reference answers, so unverified questions are sufficient. "Cannot tell"
is an answer of its own. A question that a person did not read is missing and forms no pair.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np

from cardiolens.curation.review.agreement import (
    ALL,
    RESAMPLES,
    SEED,
    Pair,
    as_record,
    in_words,
    intervals,
)
from cardiolens.curation.review.ledger import Line, Reviews
from cardiolens.curation.review.review_items import Item
from cardiolens.score.statistics.bootstrap import Interval, percentile, resampling_weights
from cardiolens.score.statistics.metrics import ratio

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Person:
    """Counts of questions that one person read or missed."""

    reader: str
    n_items: int
    n_read: int
    n_cannot_tell: int
    n_barred: int  # not read because verification showed this person the answer
    n_missing: int
    seconds_median: float


@dataclass(frozen=True, slots=True)
class Between:
    """Agreement between pairs of people on questions that both read."""

    subtask: str
    readers: tuple[str, ...]
    n_pairs: int
    n_patients: int
    same: Interval
    kappa: Interval
    ac1: Interval


def people_of(items: Mapping[tuple[str, str], Item], reviews: Reviews) -> list[Person]:
    """Return the counts of everyone who read a question, sorted by name."""
    lines: dict[str, list[Line]] = defaultdict(list)
    barred: dict[str, int] = defaultdict(int)
    decided = {key: reviews.of("read", key) for key in items}
    for readings in decided.values():
        for reader, line in readings.items():
            lines[reader].append(line)
    for reader in lines:
        barred[reader] = sum((reader, key[0]) in reviews.seen and reader not in decided[key] for key in items)
    return [
        Person(
            reader=reader,
            n_items=len(items),
            n_read=len(readings),
            n_cannot_tell=sum(not line.answer for line in readings),
            n_barred=barred[reader],
            n_missing=len(items) - len(readings) - barred[reader],
            seconds_median=float(np.median([line.seconds for line in readings])),
        )
        for reader, readings in sorted(lines.items())
    ]


def ceiling(items: Mapping[tuple[str, str], Item], reviews: Reviews) -> list[Between]:
    """Return agreement of all pairs, of each pair, and of all pairs by subtask."""
    pairs = list(_pairs(items, reviews))
    everyone = tuple(sorted({reader for readers, _, _ in pairs for reader in readers}))
    by_pair: dict[tuple[str, str], list[Pair]] = defaultdict(list)
    by_subtask: dict[str, list[Pair]] = defaultdict(list)
    for readers, subtask, pair in pairs:
        by_pair[readers].append(pair)
        by_subtask[subtask].append(pair)
    rows = [_between(ALL, everyone, [pair for _, _, pair in pairs])] if pairs else []
    if len(by_pair) > 1:
        rows += [_between(ALL, readers, pair_lines) for readers, pair_lines in sorted(by_pair.items())]
    return rows + [
        _between(subtask, everyone, subtask_lines) for subtask, subtask_lines in by_subtask.items()
    ]


def _pairs(
    items: Mapping[tuple[str, str], Item], reviews: Reviews
) -> Iterator[tuple[tuple[str, str], str, Pair]]:
    for key, item in items.items():
        lines = reviews.of("read", key)
        for first, second in combinations(sorted(lines), 2):
            answers = tuple(sorted(lines[first].answer)), tuple(sorted(lines[second].answer))
            table = f"{item.subtask.id} {first} {second}"  # chance agreement is per pair and subtask
            yield (first, second), item.subtask.id, Pair(item.patient, table, answers)


def _between(subtask: str, readers: tuple[str, ...], pairs: Sequence[Pair]) -> Between:
    kappa, ac1 = intervals(pairs)
    return Between(
        subtask=subtask,
        readers=readers,
        n_pairs=len(pairs),
        n_patients=len({pair.patient for pair in pairs}),
        same=_same(pairs),
        kappa=kappa,
        ac1=ac1,
    )


def _same(pairs: Sequence[Pair]) -> Interval:
    """Return the share of pairs with the same answer, resampled by patient."""
    patients = {name: place for place, name in enumerate(sorted({pair.patient for pair in pairs}))}
    counts = np.zeros((len(patients), 2))
    for pair in pairs:
        counts[patients[pair.patient]] += (pair.answers[0] == pair.answers[1], 1)
    weights = resampling_weights(len(patients), RESAMPLES if len(patients) > 1 else 0, SEED)
    sums = weights @ counts
    n = float(len(patients)) if len(patients) > 1 else np.inf
    return percentile(ratio(sums[:, 0], sums[:, 1]), patients=n)


def lines_of(persons: Sequence[Person], rows: Sequence[Between]) -> list[Record]:
    """Return the lines of the file: people, then agreement; null for undefined numbers."""
    lines = [{"schema": "human-reader-1", **asdict(person)} for person in persons]
    return lines + [{"schema": "human-agreement-1", **as_record(row)} for row in rows]


def told_person(row: Person) -> str:
    """Format one person as a line for the terminal."""
    barred = f", {row.n_barred} whose answer they had been shown" if row.n_barred else ""
    counts = (
        f"{row.n_read}/{row.n_items} read, {row.n_missing} missing{barred}, {row.n_cannot_tell} cannot tell"
    )
    return f"{row.reader}: {counts}; {row.seconds_median:.1f} s a question (median)"


def told_between(row: Between) -> str:
    """Format one row of agreement as a line for the terminal."""
    numbers = f"{row.n_pairs} pairs, {row.n_patients} patients"
    agreed = f"same answer {in_words(row.same)}, kappa {in_words(row.kappa)}, AC1 {in_words(row.ac1)}"
    return f"{row.subtask} ({', '.join(row.readers)}): {numbers}; {agreed}"
