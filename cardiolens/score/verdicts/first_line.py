"""Replies that begin with their letters and then give reasons, as prompts of some protocols ask."""

import re

_LETTER = r"\(?[A-HZ]\)?"
_LETTERS_FIRST = re.compile(
    rf"\A\s*(?:(?:final )?answers?\s*:\s*)?{_LETTER}(?:\s*(?:[,;/&]|and)\s*{_LETTER})*[ \t.]*"
    r"(?=\n+\W*reason(?:s|ing)?\W*:)",
    re.IGNORECASE,
)
_ANSWERED = re.compile(r"\banswer\b", re.IGNORECASE)


def without_reasons(plain: str) -> str:
    """Return the letters before a line `Reason:`; capitals of the reasons are no letters.

    A reply of another form, or with reasons that come to an answer of their own, stays as it is.
    """
    first = _LETTERS_FIRST.match(plain)
    return first[0] if first and not _ANSWERED.search(plain, first.end()) else plain
