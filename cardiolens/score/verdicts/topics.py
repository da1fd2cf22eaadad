"""Whether a text speaks of what its question asks: "LV size: B" is no answer about its function."""

import functools
import re

from cardiolens.report_text.reply_lexicon import words

Family = dict[str, re.Pattern[str]]

_PLACES = re.compile(r"\b(?:which|what) (?:[\w-]+ )?(levels|walls|layers|atria)\b", re.IGNORECASE)
_HEAD = re.compile(r"\b(levels|walls|layers|atria)\b", re.IGNORECASE)


class Topics:
    """The topics of a question, by family: a property, a chamber, a side of the heart."""

    def __init__(self, question: str) -> None:
        self._families = [
            (own, others)
            for family in _families().values()
            if (own := [pattern for pattern in family.values() if pattern.search(question.lower())])
            and (others := [pattern for pattern in family.values() if pattern not in own])
        ]
        places = _PLACES.search(question)
        self._place = places[1].lower() if places else ""

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

    def is_of_other_places(self, head: str) -> bool:
        """Return whether what stands before letters lists other places: "Levels:", where walls are asked for."""
        places = {place.lower() for place in _HEAD.findall(head)}
        return self._place != "" and bool(places) and self._place not in places


@functools.cache
def _families() -> dict[str, Family]:
    return {
        family: {name: re.compile(rf"\b(?:{pattern})") for name, pattern in patterns.items()}
        for family, patterns in words().topics.items()
    }
