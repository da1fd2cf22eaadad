"""Steps of reasoning about MedThinkVQA cases, split beforehand, with verdicts on them where there are any.

The steps are split beforehand, so that a model and people judge the same ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import MOST_JSON, parse_json, read_text
from cardiolens.benchmarks.judges.step_verdict import StepVerdict, form_of, step_verdict
from cardiolens.storage.schemas import FRAME

MOST_STEPS = 15  # of a case (protocol 12)

By = Literal["people", "their judge"]


@dataclass(frozen=True, slots=True)
class Reasoning:
    """The steps of one reader about one case, with the verdicts of others if there are any."""

    line: int  # of its file
    case: int  # line of the case in the data, from 1
    steps: tuple[str, ...]
    given: tuple[StepVerdict | None, ...] | None  # by step; None: that step got no verdict
    by: By = "people"  # who gave these verdicts: people, or the judge of MedThinkVQA's makers


def lines_of(path: Path, word: str = "steps") -> list[tuple[str, Mapping[str, Any]]]:
    """Return the objects of the file that a word names and where each stands; InputError for anything else.

    A file called .json holds a list, or an object with a list named data; any other has an object per line.
    """
    try:
        text = read_text(path, MOST_JSON)
    except (OSError, UnicodeError) as error:
        raise InputError(f"{word}={path}: cannot be read as UTF-8 text ({error})") from None
    if path.suffix.lower() == ".json":
        entries = [(f"{path}, entry {at}", entry) for at, entry in enumerate(_listed(path, text), start=1)]
    else:
        lines = text.removesuffix("\n").split("\n") if text else []
        entries = [(f"{path}:{at}", _parsed(f"{path}:{at}", line)) for at, line in enumerate(lines, start=1)]
    if not entries:
        raise InputError(f"{word}={path}: has no line; give one object a line")
    for where, entry in entries:
        if not isinstance(entry, dict):
            raise InputError(f"{where}: is {type(entry).__name__}; expected an object; correct the line")
    return entries


def _listed(path: Path, text: str) -> list[Any]:
    content = _parsed(str(path), text)
    entries = content.get("data") if isinstance(content, dict) else content
    if not isinstance(entries, list):
        raise InputError(
            f"{path}: holds no list of cases; expected a list, or an object with a list named data"
        )
    return entries


def _parsed(where: str, text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError as error:
        raise InputError(f"{where}: not JSON ({error}); correct the line") from None


def read_lines(entries: Sequence[tuple[str, Mapping[str, Any]]], n_cases: int) -> list[Reasoning]:
    """Parse lines of our own form; InputError names line and field, the legal values, and the remedy."""
    reasonings = []
    for number, (where, entry) in enumerate(entries, start=1):
        try:
            reasonings.append(_reasoning(entry, number, n_cases))
        except InputError as error:
            raise InputError(f"{where}: {error}; correct the line") from None
    return reasonings


def _reasoning(record: Mapping[str, Any], line: int, n_cases: int) -> Reasoning:
    if unknown := sorted(record.keys() - {"case", "steps", "people"}):
        raise InputError(f"{unknown[0]} is unknown; legal are case, steps and people")
    case, people = record.get("case"), record.get("people")
    if type(case) is not int or not 1 <= case <= n_cases:
        raise InputError(f"case is {case!r}; expected the line of a case, 1 to {n_cases}")
    steps = steps_of("steps", record.get("steps"))
    if people is None:
        return Reasoning(line, case, steps, None)
    if not isinstance(people, list) or len(people) != len(steps):
        raise InputError(f"people is no list of one verdict for each of the {len(steps)} steps")
    return Reasoning(line, case, steps, tuple(_of_people(at, entry) for at, entry in enumerate(people, 1)))


def _of_people(at: int, entry: object) -> StepVerdict:
    try:
        return step_verdict(entry, form_of(entry))
    except InputError as error:
        raise InputError(f"people, step {at}: {error}") from None


def steps_of(name: str, value: object) -> tuple[str, ...]:
    """Parse the steps of a reasoning in a field of that name."""
    texts = value if isinstance(value, list) else []
    if not 1 <= len(texts) <= MOST_STEPS or not all(_is_step(text) for text in texts):
        raise InputError(f"{name} is no list of 1 to {MOST_STEPS} texts")
    return tuple(texts)


def _is_step(text: object) -> bool:
    return isinstance(text, str) and bool(text.strip()) and FRAME not in text
