"""A rule that recognises what may identify somebody, and what the rules of names, dates and numbers share."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["name", "date", "age", "number", "address"]
Words = Mapping[str, str]  # by what they stand for; separated by blanks
WORD = r"[^\W\d_][\w'’.-]*"


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern of folded text, and a condition on what it matches."""

    kind: Kind
    pattern: re.Pattern[str]
    holds: Callable[[re.Match[str]], bool] = bool


def rule(kind: Kind, pattern: str, holds: Callable[[re.Match[str]], bool] = bool) -> Rule:
    """Return a rule of a pattern that is not compiled yet."""
    return Rule(kind, re.compile(pattern), holds)


def any_of(words: str) -> str:
    """A choice of words, the longest first; `_` stands for a blank."""
    chosen = sorted(words.split(), key=len, reverse=True)
    return "(?:" + "|".join(re.escape(word).replace("_", r"\s") for word in chosen) + ")"
