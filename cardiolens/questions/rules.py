"""The extractor by rules: the one that judges reports, read more strictly, with numbers and diagnoses."""

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cardiolens.judging.text.findings import Finding, findings
from cardiolens.judging.text.sections import Sentence, sentences
from cardiolens.questions.diagnosis import diagnoses
from cardiolens.questions.found import Found
from cardiolens.questions.numbers import measured
from cardiolens.questions.reasons import Reason
from cardiolens.tasks.catalogue import Catalogue, Subtask
from cardiolens.tasks.protocol import read_yaml


@functools.cache
def words() -> Mapping[str, Any]:
    """The packaged words of strictness, read once."""
    return read_yaml(Path(__file__).parent / "words.yaml")


def extract(text: str, sex: str | None, catalogue: Catalogue) -> list[Found]:
    """Every finding of a report, in the order of the catalogue, each checked against the text."""
    pieces = list(sentences(text))
    found = [*_stated(text, pieces, catalogue), *measured(text, pieces, sex)]
    found += diagnoses(text, pieces, catalogue)
    return [one.check(text) for one in found]


def _stated(text: str, pieces: Sequence[Sentence], catalogue: Catalogue) -> Iterator[Found]:
    for subtask_of, sequence in _fields(catalogue):
        for one in findings(text, catalogue.lexicons[sequence]):
            subtask = subtask_of.get(one.field)
            if subtask is None or one.measured or _is_heading(one):
                continue
            sentence = sentence_at(pieces, one.start)
            found = Found(
                subtask.id, one.value, one.start, one.end, one.quote, one.section, one.polarity,
                one.certainty, "rules",
            )  # fmt: skip
            doubt = doubt_of(found, subtask, text[sentence.start : sentence.end])
            yield replace(found, doubt=doubt)


def _fields(catalogue: Catalogue) -> Iterator[tuple[dict[str, Subtask], str]]:
    for sequence in catalogue.lexicons:
        own = {one.field: one for one in catalogue.subtasks.values() if one.sequence == sequence}
        yield own, sequence


def sentence_at(pieces: Sequence[Sentence], place: int) -> Sentence:
    """The sentence in which a place of the text lies."""
    return next(one for one in reversed(pieces) if one.start <= place)


def _is_heading(one: Finding) -> bool:
    """Return whether a finding rests on the heading of a section alone: `LGE:`."""
    return one.quote.rstrip().endswith(":") and len(one.quote.split()) <= 2


def doubt_of(found: Found, subtask: Subtask, sentence: str) -> str | None:
    """Why the value of a finding is not told for certain; None where it is."""
    if found.value is None:
        return Reason.NO_OPTION
    normal = found.value in {option.text for option in subtask.options if option.normal}
    doubt = _doubt_of_grade(found, subtask, normal=normal)
    if doubt is None and not normal:
        doubt = _doubt_of_abnormal(found, subtask, sentence)
    return doubt or (_doubt_of_normal(found, subtask, sentence) if normal else None)


def _doubt_of_abnormal(found: Found, subtask: Subtask, sentence: str) -> str | None:
    rules = words()
    if _has(rules["outside"].get(subtask.id, r"(?!)"), sentence):
        return Reason.OTHER_STRUCTURE
    return Reason.BETWEEN_GRADES if _has(rules["share"].get(subtask.id, r"(?!)"), found.quote) else None


def _doubt_of_grade(found: Found, subtask: Subtask, *, normal: bool) -> str | None:
    rules = words()
    if subtask.id in rules["graded"] and not normal and not _has(rules["grade"], found.quote):
        return Reason.WITHOUT_GRADE
    if _contradicts_grade(found, subtask, rules["means"]):
        return Reason.BETWEEN_GRADES
    if _has(rules["grades"], found.quote) and not _has(rules["held"].get(subtask.id, r"(?!)"), found.quote):
        return Reason.BETWEEN_GRADES if subtask.id in rules["graded"] else None
    return Reason.BORDERLINE if _has(rules["borderline"], found.quote) else None


def _contradicts_grade(found: Found, subtask: Subtask, means: Mapping[str, Mapping[str, list[str]]]) -> bool:
    """Return whether the grades of a clause mean other options than the one that was read."""
    allowed = [
        options[subtask.id]
        for grade, options in means.items()
        if subtask.id in options and _has(grade, found.quote)
    ]
    key = next(option.key for option in subtask.options if option.text == found.value)
    denied = found.polarity == "negated"
    return bool(allowed) and not denied and key not in {one for keys in allowed for one in keys}


def _doubt_of_normal(found: Found, subtask: Subtask, sentence: str) -> str | None:
    rules = words()
    if subtask.id in rules["gates"]:
        own = rules["own_place"].get(subtask.id)
        written = re.sub(own, "", found.quote, flags=re.IGNORECASE) if own else found.quote
        if _has(rules["place"], written) or _has(rules["place"], _before(found.quote, sentence, own)):
            return Reason.DENIED_IN_PART
        if _has(rules["exception"], sentence):
            return Reason.DENIED_IN_PART
    denied = found.polarity == "negated" or _has(r"\b(no|not|without)\b", found.quote)
    if denied and _has(rules["kind"], found.quote):
        return Reason.QUALIFIED_DENIAL
    if subtask.id in rules["whole"] and not _has(rules["whole"][subtask.id], found.quote):
        return Reason.QUALIFIED_DENIAL
    if subtask.id == "C02" and denied and not _has(r"abnormal|normal", found.quote):
        return Reason.QUALIFIED_DENIAL  # no thinning: it may be thick
    return None


def _before(quote: str, sentence: str, own: str | None) -> str:
    """The words right before a clause that may limit it: `the remaining segments contract normally`."""
    head = sentence.partition(quote)[0][-25:]
    return re.sub(own, "", head, flags=re.IGNORECASE) if own else head


def _has(pattern: str, written: str) -> bool:
    return re.search(pattern, written, re.IGNORECASE) is not None
