"""JSON in a reply: alone, in prose or in a code fence, well-formed or not."""

import functools
import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from cardiolens.report_text.reply_lexicon import words

_BRACE = re.compile(r"\{")
_DECODER = json.JSONDecoder()
_OPENED = re.compile(r"""\{\s*["']""")
_PAIR = re.compile(
    r"""["'](?P<name>[^"'\n]{1,40})["']\s*:\s*(?P<value>"(?:[^"\\]|\\.)*"|'[^'\n]*'|\[[^\[\]]*\])"""
)


class KeyedValue(NamedTuple):
    """The value of an answer key and the place of its object."""

    value: object
    start: int
    end: int


def objects(text: str) -> Iterator[dict[str, object]]:
    """Yield the outermost JSON objects of a text in order."""
    for value, _, _ in _placed(text):
        yield value


def _placed(text: str) -> Iterator[tuple[dict[str, object], int, int]]:
    position = 0
    while brace := _BRACE.search(text, position):
        try:
            value, position = _DECODER.raw_decode(text, brace.start())
        except ValueError:
            position = brace.end()
            continue
        except RecursionError:  # no answer is a thousand levels deep
            return
        yield value, brace.start(), position


def answers(text: str) -> list[KeyedValue]:
    """The answers of all JSON objects in order; of a broken object, its last complete answer value.

    A broken object without one counts as an answer of None, so that no mark inside it is read.
    """
    parsed_objects = [KeyedValue(value, start, end) for value, start, end in _placed(text)]
    values = [KeyedValue(_answer(entry.value), entry.start, entry.end) for entry in parsed_objects]
    joined = _joined([entry for entry in values if entry.value is not _NO_KEY], text)
    is_of_questions = [
        isinstance(entry.value, dict) and _names_question(entry.value) for entry in parsed_objects
    ]
    if len(joined) == 1 and sum(is_of_questions) > 1:
        joined = [joined[0]._replace(value=_SEVERAL)]
    rest = _OPENED.search(text, parsed_objects[-1].end if parsed_objects else 0)
    return joined + (_from_broken(text, rest.start()) if rest else [])


_QUESTION_KEYS = frozenset({"question", "questionid", "id", "qaid", "code", "subtask", "task", "item"})
_NO_KEY = object()
_SEVERAL = ("answers to several questions",)
_BETWEEN_ENTRIES = re.compile(r"\s*,\s*")


def _joined(values: list[KeyedValue], text: str) -> list[KeyedValue]:
    """Answers with the entries of one array as one answer."""
    joined: list[KeyedValue] = []
    for entry in values:
        if joined and _BETWEEN_ENTRIES.fullmatch(text, joined[-1].end, entry.start):
            value = _together(joined[-1].value, entry.value)
            joined[-1] = KeyedValue(value, joined[-1].start, entry.end)
        else:
            joined.append(entry)
    return joined


def _together(first: object, second: object) -> object:
    """The values of two entries of one array: judgements of options as one object, others as a list."""
    if isinstance(first, dict) and isinstance(second, dict):
        return {**first, **second}
    return [*(first if isinstance(first, list) else [first]), second]


def _answer(value: object) -> object:
    """The value of the last answer key of an object, or of a nested object."""
    if not isinstance(value, dict):
        return _NO_KEY
    for key in reversed(value):
        if is_answer_key(key):
            return value[key]
    inner = [_answer(value[key]) for key in reversed(value) if _plain(key) not in words().json_others]
    nested = [entry for entry in inner if entry is not _NO_KEY]
    if not nested:
        return _labelled(value)
    return nested[0] if all(entry == nested[0] for entry in nested) else _SEVERAL


def _labelled(value: dict[str, object]) -> object:
    """What an object without an answer key gives as its label; several labels are read together.

    With its judgement, if it has one: {"option": "A", "present": false}.
    """
    labels = [
        entry
        for key, entry in value.items()
        if _plain(key) in words().json_labels and isinstance(entry, str | list)
    ]
    judgements = [entry for entry in value.values() if isinstance(entry, bool)]
    if labels and judgements:
        return {str(labels[0]): all(judgements)}
    return (labels if labels[1:] else labels[0]) if labels else _NO_KEY


def _from_broken(text: str, start: int) -> list[KeyedValue]:
    pairs = [pair for pair in _PAIR.finditer(text, start) if is_answer_key(pair["name"])]
    end = pairs[-1].end() if pairs else len(text)
    return [KeyedValue(pairs[-1]["value"] if pairs else None, start, end)]


def is_answer_key(key: str) -> bool:
    """Return whether a key means "answer", ignoring case and separators."""
    return _plain(key) in _answer_keys()


def _names_question(value: dict[str, object]) -> bool:
    """Return whether an object has an answer and says to which question."""
    return any(map(is_answer_key, value)) and not _QUESTION_KEYS.isdisjoint(map(_plain, value))


def _plain(key: str) -> str:
    return re.sub(r"[_\s-]", "", key).casefold()


@functools.cache
def _answer_keys() -> frozenset[str]:
    return frozenset(words().json_keys)
