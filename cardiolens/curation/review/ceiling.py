"""Human ceiling: agreement of people who read the same questions, as models do, with intervals.

Only agreement is measured, never reference answers, so unverified questions are sufficient. "Cannot tell"
is an answer of its own. A question that a person did not read is missing and forms no pair.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np

from cardiolens.curation.review.agreement import Pair, as_record, in_words, intervals, resampled
from cardiolens.curation.review.ledger import Key, Line, Reviews
from cardiolens.curation.review.review_items import Item
from cardiolens.score.statistics.bootstrap import Interval, cluster_interval
from cardiolens.score.statistics.metrics import ratio

ALL = "all"


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

    def line(self) -> str:
        """Return the line for the terminal."""
        barred = f", {self.n_barred} whose answer they had been shown" if self.n_barred else ""
        read = f"{self.n_read}/{self.n_items} read, {self.n_missing} missing{barred}"
        seconds = f"{self.seconds_median:.1f} s a question (median)"
        return f"{self.reader}: {read}, {self.n_cannot_tell} cannot tell; {seconds}"


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

    def line(self) -> str:
        """Return the line for the terminal."""
        numbers = f"{self.n_pairs} pairs, {self.n_patients} patients"
        agreed = f"same answer {in_words(self.same)}, kappa {in_words(self.kappa)}, AC1 {in_words(self.ac1)}"
        return f"{self.subtask} ({', '.join(self.readers)}): {numbers}; {agreed}"


def people_of(items: Mapping[Key, Item], reviews: Reviews) -> list[Person]:
    """Return the counts of everyone who read a question, sorted by name."""
    lines: dict[str, dict[Key, Line]] = defaultdict(dict)
    for key in items:
        for reader, line in reviews.of("read", key).items():
            lines[reader][key] = line
    people = []
    for reader, read in sorted(lines.items()):
        n_barred = sum((reader, key[0]) in reviews.seen for key in items.keys() - read.keys())
        people.append(
            Person(
                reader=reader,
                n_items=len(items),
                n_read=len(read),
                n_cannot_tell=sum(not line.answer for line in read.values()),
                n_barred=n_barred,
                n_missing=len(items) - len(read) - n_barred,
                seconds_median=float(np.median([line.seconds for line in read.values()])),
            )
        )
    return people


def ceiling(items: Mapping[Key, Item], reviews: Reviews) -> list[Between]:
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
    rows = (
        [_between(ALL, everyone, [pair for pairs in by_subtask.values() for pair in pairs])]
        if by_pair
        else []
    )
    if len(by_pair) > 1:
        rows += [_between(ALL, readers, pairs) for readers, pairs in sorted(by_pair.items())]
    return rows + [_between(subtask, everyone, pairs) for subtask, pairs in by_subtask.items()]


def _between(subtask: str, readers: tuple[str, ...], pairs: Sequence[Pair]) -> Between:
    patients, weights = resampled(pairs)
    counts = np.zeros((len(patients), 2))
    for pair in pairs:
        counts[patients[pair.patient]] += (pair.answers[0] == pair.answers[1], 1)
    sums = weights @ counts
    same = cluster_interval(ratio(sums[:, 0], sums[:, 1]), len(patients))
    return Between(subtask, readers, len(pairs), len(patients), same, *intervals(pairs))


def lines_of(persons: Sequence[Person], rows: Sequence[Between]) -> list[dict[str, Any]]:
    """Return the lines of the file: people, then agreement; null for undefined numbers."""
    lines = [{"schema": "human-reader-1", **asdict(person)} for person in persons]
    return lines + [{"schema": "human-agreement-1", **as_record(row)} for row in rows]
