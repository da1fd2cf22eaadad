"""A person as a reader: the exported answers from the page of `cardiolens.review`, by question."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import parse_json, read_text
from cardiolens.config.model import ModelSpec

_FIELDS = ("qa_id", "answer", "seconds")


@dataclass(frozen=True, slots=True)
class Reading:
    """One answered question; no option keys if the person chose "cannot tell"."""

    answer: tuple[str, ...]  # original option keys
    seconds: float


def readings_of(model: ModelSpec) -> Mapping[str, Reading]:
    """Read the file of a model entry with `engine: person`; readings by qa_id, InputError if unusable."""
    path = Path(model.source)
    if not path.is_file():
        raise InputError(
            f"model {model.name}: {path}: no such file; source is the file of a person's readings, which "
            "`cardiolens.review export` writes: <out>/readings/<pseudonym>.jsonl"
        )
    readings: dict[str, Reading] = {}
    try:
        lines = read_text(path).splitlines()
    except (OSError, UnicodeError) as error:
        raise InputError(f"model {model.name}: {path} cannot be read ({error}); export it again") from error
    for number, line in enumerate(lines, start=1):
        where = f"model {model.name}: {path} line {number}"
        qa_id, reading = _reading(line, where)
        if qa_id in readings:
            raise InputError(f"{where}: question {qa_id} stands twice; export the readings again")
        readings[qa_id] = reading
    if not readings:
        raise InputError(f"model {model.name}: {path} holds no reading; leave the model out")
    return readings


def _reading(line: str, where: str) -> tuple[str, Reading]:
    try:
        record: Any = parse_json(line)
    except ValueError as error:
        raise InputError(f"{where}: no JSON ({error}); export the readings again") from None
    if not isinstance(record, dict) or any(name not in record for name in _FIELDS):
        raise InputError(f"{where}: needs {', '.join(_FIELDS)}; export the readings again")
    qa_id, answer, seconds = (record[name] for name in _FIELDS)
    keys = isinstance(answer, list) and all(isinstance(key, str) for key in answer)
    timed = isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 <= seconds < 1e6
    if not isinstance(qa_id, str) or not keys or not timed:
        raise InputError(
            f"{where}: qa_id is a text, answer a list of option keys, seconds a number; export again"
        )
    return qa_id, Reading(tuple(answer), float(seconds))
