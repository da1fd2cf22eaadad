"""Score replies to choice questions: the options that a reply names, against the right ones.

A reply is read by its last line `ANSWER: A, C` or its last line of JSON, `{"answer": ["A", "C"]}`; a reply
of letters alone is read as well. Prose is not read and counts as wrong: a sweep of CardioLens reads more.
This file needs nothing but Python.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

_MARK = re.compile(r"\bANSWERS?\b[\s*_`]*[:=](.*)", re.IGNORECASE)
_BETWEEN = re.compile(r"[\s,;/&+]+|\band\b", re.IGNORECASE)
_WITH_TEXT = re.compile(r"\(?([A-Z])\s*[.):]\s+\S.*")
_AROUND = " \t.*_`'\"()[]{}$"


def picked(reply: str, keys: Sequence[str], *, several: bool) -> set[str] | None:
    """Return the option keys that a reply names; None if it cannot be read, or names what is no option."""
    lines = [line.strip() for line in reply.strip().splitlines() if line.strip()]
    for line in reversed(lines):
        named = _named(line)
        if named is not None:
            return _legal(named, keys, several)
    return _legal(_letters(lines[0]), keys, several) if len(lines) == 1 else None


def is_correct(reply: str, row: Mapping[str, Any]) -> bool:
    """Whether a reply names exactly the right options of a row of the table."""
    keys = [option["key"] for option in row["options"]]
    return picked(reply, keys, several=row["answer_type"] == "multi") == set(row["answer"])


def target(doc: Mapping[str, Any]) -> str:
    """Return the right options of a row, e.g. `A, C` (lmms-eval: doc_to_target)."""
    return ", ".join(doc["answer"])


def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, float]:
    """Return the value of each metric for one reply (lmms-eval: process_results)."""
    return {"accuracy": float(is_correct(results[0], doc))}


def _named(line: str) -> list[str] | None:
    """Return the letters that a line marks as its answer; None if it marks none."""
    mark = _MARK.search(line)
    if line.startswith("{"):
        try:
            told = json.loads(line)
        except ValueError:
            return None
        answer = told.get("answer") if isinstance(told, dict) else None
        if answer is None:
            return None
        return [str(one) for one in answer] if isinstance(answer, list) else [str(answer)]
    return _letters(mark[1]) if mark else None


def _letters(text: str) -> list[str]:
    """Return the letters of a text of letters alone, or of one option with its words; else its words."""
    text = text.strip().strip("*_`").strip()
    if option := _WITH_TEXT.fullmatch(text):
        return [option[1]]
    return [letter for part in _BETWEEN.split(text) if (letter := part.strip(_AROUND))]


def _legal(named: Sequence[str], keys: Sequence[str], several: bool) -> set[str] | None:
    chosen = {name.strip(_AROUND).upper() for name in named}
    legal = bool(chosen) and chosen <= set(keys) and (several or len(chosen) == 1)
    return chosen if legal else None
