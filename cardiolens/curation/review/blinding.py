"""Blinding of people who read as models do: names and an order of questions that tell no answer.

Ids of questions and studies may hold an answer ("C10-answer-B"), a list in the order of such ids puts equal
answers together, and anybody could compute a plain digest of an id for each option. So the page gets digests
under a key. The key lies with the links, so that a page that is open while the server starts again can still
say which question it means.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby

from cardiolens.curation.review.review_items import Item


@dataclass(frozen=True, slots=True)
class Blinding:
    """Names under one key."""

    key: bytes = field(repr=False)

    def item(self, item: Item) -> str:
        """Return the name of an item."""
        return self._name("item", item.qa_id, item.digest)

    def study(self, study_id: str) -> str:
        """Return the name of a study, short enough to be read."""
        return self._name("study", study_id)[:12]

    def in_order(self, items: Iterable[Item]) -> list[Item]:
        """Return items study by study, in the given order of subtasks, and otherwise in an order of names."""
        groups = [list(group) for _, group in groupby(items, lambda item: (_study(item), item.subtask.id))]
        groups.sort(key=lambda group: self._name("study", _study(group[0])))
        return [item for group in groups for item in sorted(group, key=self.item)]

    def _name(self, *parts: str) -> str:
        text = "\0".join(parts).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(text, key=self.key[:64], digest_size=16).hexdigest()


def _study(item: Item) -> str:
    return item.question.study_id
