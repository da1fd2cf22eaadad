"""Steps of reasoning about MedThinkVQA cases, with verdicts on them where there are any (protocol 16.17).

A file holds records of the benchmark in which its makers' scripts wrote the steps and their judge's verdicts,
or lines of the case's number, the steps, and verdicts of people. Verdicts have the form of the makers' judge.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import MOST_JSON, parse_json, read_text
from cardiolens.benchmarks.benchmark import Source
from cardiolens.benchmarks.medthinkvqa import records
from cardiolens.storage.schemas import FRAME

MOST_STEPS = 15  # of a case (protocol 12)
ERRORS = ("Reasoning", "Image Understanding", "Clinical Scenario", "Medical Knowledge")
PUBLISHED_ERRORS = tuple(f"{name} Err" for name in ERRORS)  # as verdicts name them

_STEPS, _VERDICTS = "explanation_steps", "explanation_steps_checks"  # of the makers' records
_FILLED_IN = (  # explanations with which their scripts mark steps that got no verdict, as not factual
    "No valid structured verdict was returned.",
    "Missing verdict; treated as unsupported.",
)
_KEYS = ("is_factual", "is_critical", "explanation", "error_types")


@dataclass(frozen=True, slots=True)
class StepVerdict:
    """The verdict of the judge or of a person on one step."""

    is_factual: bool
    is_critical: bool
    error_types: tuple[str, ...] | None  # of ERRORS; None: not factual, and what is wrong was not said


@dataclass(frozen=True, slots=True)
class Reasoning:
    """The steps of one reader about one case, with the verdicts of others if there are any."""

    line: int  # of its file
    case: int  # line of the case in the data, from 1
    steps: tuple[str, ...]
    given: tuple[StepVerdict | None, ...] | None  # by step; None: that step got no verdict
    by: Literal["people", "their judge"] = "people"  # who gave these verdicts


def read_reasoning(path: Path, source: Source) -> list[Reasoning]:
    """Read a file of steps; InputError names place and field, the value, the legal values, and the remedy."""
    entries, cases = lines_of(path), _cases(source)
    read = []
    for line, (where, entry) in enumerate(entries, start=1):
        try:
            if entry.get(_STEPS) != []:  # a record without a step is left out
                read.append(_reasoning(entry, line, cases))
        except InputError as error:
            raise InputError(f"{where}: {error}; correct the file, or leave the record out") from None
    if not read:
        raise InputError(f"{entries[0][0]}: no record has a step; give a file whose {_STEPS} are filled in")
    return read


def lines_of(path: Path, word: str = "steps") -> list[tuple[str, Mapping[str, Any]]]:
    """Return the objects of the file that a word names and where each stands; InputError for anything else.

    A file called .json holds a list, or an object with a list named data; any other has an object per line.
    """
    try:
        text = read_text(path, MOST_JSON)
    except (OSError, UnicodeError) as error:
        raise InputError(f"{word}={path}: cannot be read as UTF-8 text ({error})") from None
    if path.suffix.lower() == ".json":
        content = _parsed(str(path), text)
        listed = content.get("data") if isinstance(content, dict) else content
        if not isinstance(listed, list):
            raise InputError(
                f"{path}: holds no list of cases; expected a list, or an object with a list named data"
            )
        entries = [(f"{path}, entry {at}", entry) for at, entry in enumerate(listed, start=1)]
    else:
        lines = text.removesuffix("\n").split("\n") if text else []
        entries = [(f"{path}:{at}", _parsed(f"{path}:{at}", line)) for at, line in enumerate(lines, start=1)]
    if not entries:
        raise InputError(f"{word}={path}: has no line; give one object a line")
    for where, entry in entries:
        if not isinstance(entry, dict):
            raise InputError(f"{where}: is {type(entry).__name__}; expected an object; correct the line")
    return entries


def _parsed(where: str, text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError as error:
        raise InputError(f"{where}: not JSON ({error}); correct the line") from None


def _cases(source: Source) -> dict[object, list[int]]:
    """Return the line numbers of the cases by number, and by title and history."""
    numbers: dict[object, list[int]] = {}
    for number, record in records(source):
        numbers[number] = [number]
        numbers.setdefault(_key(record), []).append(number)
    return numbers


def _key(record: Mapping[str, Any]) -> tuple[str, str]:
    """Return title and history, without regard to case and white space."""
    history = record.get("CLINICAL_HISTORY") or record.get("clinical_history")
    title, words = (" ".join(str(text or "").split()).casefold() for text in (record.get("title"), history))
    return title, words


def _reasoning(entry: Mapping[str, Any], line: int, cases: Mapping[object, list[int]]) -> Reasoning:
    if _STEPS not in entry:
        return _own_line(entry, line, cases)
    match = cases.get(_key(entry), [])
    if len(match) != 1:
        many = f"is that of lines {', '.join(map(str, match))}" if match else "is that of no case"
        raise InputError(
            f"title {str(entry.get('title'))[:60]!r} with its CLINICAL_HISTORY {many} of the data; expected "
            "that of one case of this split"
        )
    steps = _steps(_STEPS, entry[_STEPS])
    given = _verdicts(_VERDICTS, entry.get(_VERDICTS), len(steps))
    return Reasoning(line, match[0], steps, given, "their judge")


def _own_line(entry: Mapping[str, Any], line: int, cases: Mapping[object, list[int]]) -> Reasoning:
    if unknown := sorted(entry.keys() - {"case", "steps", "people"}):
        raise InputError(f"{unknown[0]} is unknown; legal are case, steps and people")
    case = entry.get("case")
    if type(case) is not int or case not in cases:
        most = max(number for number in cases if isinstance(number, int))
        raise InputError(f"case is {case!r}; expected the line of a case, 1 to {most}")
    steps = _steps("steps", entry.get("steps"))
    return Reasoning(line, case, steps, _verdicts("people", entry.get("people"), len(steps)))


def _steps(name: str, value: object) -> tuple[str, ...]:
    texts = value if isinstance(value, list) else []
    legal = all(isinstance(text, str) and text.strip() and FRAME not in text for text in texts)
    if not 1 <= len(texts) <= MOST_STEPS or not legal:
        raise InputError(f"{name} is no list of 1 to {MOST_STEPS} texts")
    return tuple(texts)


def _verdicts(name: str, entries: object, count: int) -> tuple[StepVerdict | None, ...] | None:
    """Parse verdicts, one per step; None where there are none."""
    if entries is None:
        return None
    if not isinstance(entries, list) or len(entries) != count:
        raise InputError(f"{name} is no list of one verdict for each of the {count} steps")
    return tuple(_given(f"{name}, step {at}", entry) for at, entry in enumerate(entries, start=1))


def _given(where: str, entry: object) -> StepVerdict | None:
    fields = entry if isinstance(entry, Mapping) else {}
    if fields.get("is_factual") is False and fields.get("explanation") in _FILLED_IN:
        return None
    try:
        return step_verdict(entry)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def step_verdict(entry: object) -> StepVerdict:
    """Parse a verdict; InputError names the field, its value, and what is legal.

    `explanation` and `error_types` may be missing; the types of a step that is factual do not count.
    """
    if not isinstance(entry, Mapping):
        raise _wrong("the verdict", entry, f"an object with {', '.join(_KEYS)}")
    if unknown := sorted(entry.keys() - set(_KEYS)):
        raise InputError(f"{unknown[0]} is unknown; legal are {', '.join(_KEYS)}")
    for name in _KEYS[:2]:
        if not isinstance(entry.get(name), bool):
            raise _wrong(name, entry.get(name), "true or false")
    if not isinstance(entry.get("explanation", ""), str):
        raise _wrong("explanation", entry["explanation"], "text")
    types = _error_types(entry.get("error_types"))
    return StepVerdict(
        entry["is_factual"], entry["is_critical"], () if entry["is_factual"] else types or None
    )


def _error_types(value: object) -> tuple[str, ...]:
    legal = f"a list of {', '.join(PUBLISHED_ERRORS)}, or null"
    for name in value if isinstance(value, list) else []:
        if name not in PUBLISHED_ERRORS:
            raise _wrong("error_types", name, legal)
    if value is not None and not isinstance(value, list):
        raise _wrong("error_types", value, legal)
    named = zip(ERRORS, PUBLISHED_ERRORS, strict=True)
    return tuple(own for own, name in named if name in (value or ()))


def _wrong(name: str, value: object, expected: str) -> InputError:
    text = "missing" if value is None else json.dumps(value, ensure_ascii=False)[:60]
    return InputError(f"{name} is {text}; expected {expected}")
