"""Read a reply to an open question, strictly: its marked answer, or a reply that is nothing else."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from cardiolens.protocol.replies.marks import objects

_Value = TypeVar("_Value")

_MARK = re.compile(r"^[^\w\n]*(?:final )?answer[^\S\n]*[:=][^\S\n]*", re.IGNORECASE | re.MULTILINE)
_ENTRY = re.compile(r"(?P<number>\d{1,2})[.):]\s+(?P<name>\S.*)")


@dataclass(frozen=True, slots=True)
class OpenReading(Generic[_Value]):
    """What a reply answers and by which rule it was read; without a value, `problem` says why."""

    value: _Value | None
    rule: str  # answer_line | json | whole_reply | none
    problem: str = ""
    contradicts: bool = False


def read_number(text: str, read: Callable[[str], float]) -> OpenReading[float]:
    """Read one number with its unit from visible text; `read` raises ValueError for what is none.

    All marked answers must agree: nobody guesses which of two is meant.
    """
    rule, parts = _answers(text)
    values: list[float] = []
    for part in parts:
        line = part.strip().partition("\n")[0] if rule == "answer_line" else part
        try:
            values.append(read(line))
        except ValueError as error:
            return OpenReading(None, rule, str(error))
    if len(set(values)) > 1:
        return OpenReading(None, rule, "gives several answers that differ", contradicts=True)
    return OpenReading(values[-1], rule)


def read_ranking(text: str, most: int) -> OpenReading[tuple[str, ...]]:
    """Read a list of names, the likeliest first, from visible text; those beyond `most` do not count.

    The list is JSON, or lines numbered from 1 without a gap; other lines may stand behind it.
    """
    rule, parts = _answers(text)
    if rule == "json":
        names = tuple(" ".join(line.split()) for line in parts[-1].split("\n") if line.strip())
    else:
        names = _numbered(parts[-1])
    if not names:
        return OpenReading(None, rule, "has no list of names numbered from 1")
    if len({name.casefold() for name in names[:most]}) < len(names[:most]):
        return OpenReading(None, rule, "names one twice")
    return OpenReading(names[:most], rule)


def _numbered(text: str) -> tuple[str, ...]:
    names: list[str] = []
    for line in text.splitlines():
        entry = _ENTRY.fullmatch(line.strip())
        if entry is None and not names:
            if line.strip():
                return ()
        elif entry is None:
            break
        elif int(entry["number"]) == len(names) + 1:
            names.append(entry["name"].rstrip(" ."))
        else:
            return ()
    return tuple(names)


def _answers(text: str) -> tuple[str, list[str]]:
    """Return the rule and the marked answers of a reply, or the whole reply."""
    marks = list(_MARK.finditer(text))
    if marks:
        ends = [*(mark.start() for mark in marks[1:]), len(text)]
        return "answer_line", [text[mark.end() : end] for mark, end in zip(marks, ends, strict=True)]
    placed = list(objects(text))
    ends_reply = bool(placed) and not text[placed[-1].end :].strip(" \n`.")
    answers = [_as_text(one.value["answer"]) for one in placed if "answer" in one.value] if ends_reply else []
    if answers and all(answers):
        return "json", answers
    return "whole_reply", [text]


def _as_text(answer: object) -> str:
    """Return the answer in an object, its names line by line; empty if it is of another form."""
    if isinstance(answer, list) and all(isinstance(entry, str) for entry in answer):
        return "\n".join(answer)
    is_one = isinstance(answer, str | int | float) and not isinstance(answer, bool)
    return str(answer) if is_one else ""
