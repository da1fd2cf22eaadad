"""All that was asked, arm by arm, without holding it all: what scores of many arms are computed from."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.stats.answers import Answers
from cardiolens.stats.items import Ints, codes
from cardiolens.stats.shelf import Shelf
from cardiolens.stats.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Asked(Mapping[str, Answers]):
    """The answers of each arm, judged or not, by arm; a number of a question, a request or a set of entities
    means the same in every arm.
    """

    shelf: Mapping[str, Answers]
    arms: list[str]  # with a judged row, sorted

    @staticmethod
    def of(verdicts: pa.Table, patients: list[str]) -> "Asked":
        """The arms of a table of verdicts, which is read an arm at a time."""
        vocabulary = Vocabulary.of(verdicts)
        shelf: Shelf[Answers] = Shelf()
        judged = []
        for arm, rows in _by_arm(verdicts):
            answers = shelf[arm] = Answers.asked(rows, patients, vocabulary)
            if answers.items.judged.any() or answers.reports.judged.any():
                judged.append(arm)
        return Asked(shelf, sorted(judged))

    @property
    def judged(self) -> "Judged":
        """The judged rows of each arm that has any."""
        return Judged(self)

    def __getitem__(self, arm: str) -> Answers:
        return self.shelf[arm]

    def __iter__(self) -> Iterator[str]:
        return iter(self.shelf)

    def __len__(self) -> int:
        return len(self.shelf)


@dataclass(frozen=True, slots=True)
class Judged(Mapping[str, Answers]):
    """The judged rows of each arm that has any, in the order of the arms."""

    asked: Asked

    def __getitem__(self, arm: str) -> Answers:
        if arm not in self.asked.arms:
            raise KeyError(arm)
        return self.asked[arm].where_judged()

    def __iter__(self) -> Iterator[str]:
        return iter(self.asked.arms)

    def __len__(self) -> int:
        return len(self.asked.arms)


def _by_arm(verdicts: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each arm; an arm whose rows stand together, as judging writes them, is not copied."""
    number = codes(verdicts["arm_id"])
    names = pc.unique(verdicts["arm_id"]).to_pylist()
    order = np.argsort(number, kind="stable")
    ends = np.searchsorted(number[order], np.arange(len(names) + 1))
    for name, first, end in zip(names, ends[:-1], ends[1:], strict=True):
        yield str(name), _rows(verdicts, order[first:end])


def _rows(verdicts: pa.Table, rows: Ints) -> pa.Table:
    together = rows[-1] - rows[0] == len(rows) - 1
    return verdicts.slice(int(rows[0]), len(rows)) if together else verdicts.take(rows)
