"""Steps and verdicts in the files of MedThinkVQA's makers (protocol 16.17).

Their scripts write the steps and the verdicts of a judge into the record of each case. A record names its
case by title and history alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cardiolens.base.errors import InputError
from cardiolens.benchmarks.benchmark import Source
from cardiolens.benchmarks.judges.reasoning import Reasoning, steps_of
from cardiolens.benchmarks.judges.step_verdict import StepVerdict, is_filled_in, step_verdict
from cardiolens.benchmarks.medthinkvqa import records

STEPS = "explanation_steps"
VERDICTS = "explanation_steps_checks"


def read_published(entries: Sequence[tuple[str, Mapping[str, Any]]], source: Source) -> list[Reasoning]:
    """Parse records with steps; a record without a step is left out.

    InputError names place and field, the value, the legal values, and the remedy.
    """
    numbers = _numbers(source)
    reasonings = []
    for line, (where, entry) in enumerate(entries, start=1):
        try:
            if entry.get(STEPS) != []:
                reasonings.append(_reasoning(entry, line, numbers))
        except InputError as error:
            raise InputError(f"{where}: {error}; correct the file, or leave the record out") from None
    if not reasonings:
        raise InputError(f"{entries[0][0]}: no record has a step; give a file whose {STEPS} are filled in")
    return reasonings


def _reasoning(
    entry: Mapping[str, Any], line: int, numbers: Mapping[tuple[str, str], list[int]]
) -> Reasoning:
    match = numbers.get(_key(entry), [])
    if len(match) != 1:
        many = f"is that of lines {', '.join(map(str, match))}" if match else "is that of no case"
        raise InputError(
            f"title {str(entry.get('title'))[:60]!r} with its CLINICAL_HISTORY {many} of the data; expected "
            "that of one case of this split"
        )
    steps = steps_of(STEPS, entry.get(STEPS))
    return Reasoning(line, match[0], steps, _verdicts(entry.get(VERDICTS), len(steps)), "their judge")


def _verdicts(entries: object, count: int) -> tuple[StepVerdict | None, ...] | None:
    """Parse their judge's verdicts; None where there are none."""
    if entries is None:
        return None
    if not isinstance(entries, list) or len(entries) != count:
        raise InputError(f"{VERDICTS} is no list of one verdict for each of the {count} {STEPS}")
    return tuple(_each(entries))


def _each(entries: Sequence[object]) -> Iterator[StepVerdict | None]:
    for at, entry in enumerate(entries, start=1):
        if isinstance(entry, Mapping) and is_filled_in(entry):
            yield None
            continue
        try:
            yield step_verdict(entry, "published")
        except InputError as error:
            raise InputError(f"{VERDICTS}, step {at}: {error}") from None


def _numbers(source: Source) -> dict[tuple[str, str], list[int]]:
    """Return the line numbers of the cases by title and history."""
    numbers: dict[tuple[str, str], list[int]] = {}
    for number, record in records(source):
        numbers.setdefault(_key(record), []).append(number)
    return numbers


def _key(record: Mapping[str, Any]) -> tuple[str, str]:
    """Return title and history, without regard to case and white space."""
    history = record.get("CLINICAL_HISTORY") or record.get("clinical_history")
    title, words = (" ".join(str(text or "").split()).casefold() for text in (record.get("title"), history))
    return title, words
