"""Whether a text speaks of what its question asks: "LV size: B" is no answer about its function."""

import functools
import re
from typing import NamedTuple

from cardiolens.report_text.reply_lexicon import words


class _Topic(NamedTuple):
    """The patterns by which a question asks for a topic, and a statement speaks of it."""

    asks: re.Pattern[str]
    says: re.Pattern[str]


_PLACES = re.compile(r"\b(?:which|what) (?:[\w-]+ )?(levels|walls|layers|atria)\b", re.IGNORECASE)
_HEAD = re.compile(r"\b(levels|walls|layers|atria)\b", re.IGNORECASE)


class Topics:
    """The topics of a question, by family: a property, a chamber, a side of the heart."""

    def __init__(self, question: str) -> None:
        self._families = [
            (own, others)
            for family in _families()
            if (own := [topic.says for topic in family if topic.asks.search(question.lower())])
            and (others := [topic.says for topic in family if topic.says not in own])
        ]
        places = _PLACES.search(question)
        self._place = places[1].lower() if places else ""
        self.asks_for_places = self._place != ""

    @staticmethod
    @functools.lru_cache(maxsize=1024)
    def of(question: str) -> "Topics":
        """The (cached) topics of a question."""
        return Topics(question)

    def are_left_by(self, text: str) -> bool:
        """Return whether a text names topics of one family, and none of the question's own."""
        lower = text.lower()
        return any(
            any(pattern.search(lower) for pattern in others)
            and not any(pattern.search(lower) for pattern in own)
            for own, others in self._families
        )

    def are_in(self, text: str) -> bool:
        """Return whether a text names a topic of the question, or the question has none."""
        lower = text.lower()
        return not self._families or any(
            pattern.search(lower) for own, _ in self._families for pattern in own
        )

    def is_of_other_places(self, head: str) -> bool:
        """Return whether what stands before letters lists other places: "Levels:", where walls are asked."""
        places = {place.lower() for place in _HEAD.findall(head)}
        return self.asks_for_places and bool(places) and self._place not in places


@functools.cache
def _families() -> list[list[_Topic]]:
    return [
        [_Topic(*(re.compile(rf"\b(?:{pattern})") for pattern in patterns)) for patterns in family.values()]
        for family in words().topics.values()
    ]
