"""Reference reports: exact fields, and text in one of four wordings per sentence (protocol 3.1, 10.5)."""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from jinja2 import Environment, StrictUndefined

from cardiolens.phantom.parameters import data_file
from cardiolens.protocol.tasks.catalogue import Catalogue, Subtask
from cardiolens.protocol.tasks.instantiate import Findings, answer

WORDINGS = 4


def reports(findings: Findings, seed: str, catalogue: Catalogue, sequences: Sequence[str]) -> dict[str, Any]:
    """Return one reference report per sequence: {fields, findings, impression}; none on T2 of low signal."""
    forms = {
        subtask.sequence: subtask
        for subtask in catalogue.subtasks.values()
        if subtask.answer_type == "report"
    }
    texts: dict[str, Any] = {}
    void = {"t2"} if not findings["t2.signal"] else set()
    for sequence in (name for name in sequences if name in forms and name not in void):
        sentences = [
            sentence(group, sequence, findings, _wording(seed, f"{sequence}.{number}"))
            for number, group in enumerate(groups(sequence))
        ]
        texts[sequence] = {
            "fields": report_fields(forms[sequence], findings, catalogue),
            "findings": " ".join(sentences[:-1]),
            "impression": sentences[-1],
        }
    return texts


def groups(sequence: str) -> list[Sequence[str]]:
    """Return the sentence groups of a report in order, each in four wordings; the last is the impression."""
    wordings = data_file("wordings")
    return [*wordings[sequence], wordings["impressions"][sequence]]


def report_fields(form: Subtask, findings: Findings, catalogue: Catalogue) -> dict[str, str | list[str]]:
    """Return the report fields: one option text, a list for multi-answer subtasks, [] if none applies."""
    fields: dict[str, str | list[str]] = {}
    for subtask in catalogue.report_fields(form):
        texts = [subtask.text(key) for key in answer(subtask, findings)]
        fields[subtask.field] = texts if subtask.answer_type == "multi" or not texts else texts[0]
    return fields


def sentence(group: Sequence[str], sequence: str, findings: Findings, wording: int) -> str:
    """Render one group of findings in one wording."""

    def words(field: str) -> str:
        return _joined(
            [_phrase(f"{sequence}.{field}", value, wording) for value in findings[f"{sequence}.{field}"]]
        )

    def has(field: str, value: str) -> bool:
        return value in findings[f"{sequence}.{field}"]

    text = str(_template(group[wording]).render(words=words, has=has))
    return text[0].upper() + text[1:]


def _phrase(name: str, value: str, wording: int) -> str:
    phrases: Sequence[str] = data_file("wordings")["phrases"][name].get(value, [value])
    return phrases[wording % len(phrases)]


def _joined(phrases: Sequence[str]) -> str:
    if len(phrases) < 2:
        return "".join(phrases)
    return f"{', '.join(phrases[:-1])} and {phrases[-1]}"


def _wording(seed: str, group: str) -> int:
    return hashlib.sha256(f"{seed}|{group}".encode()).digest()[0] % WORDINGS


@lru_cache(maxsize=256)
def _template(text: str) -> Any:
    return Environment(undefined=StrictUndefined, autoescape=False).from_string(text)
