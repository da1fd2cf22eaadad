"""The extractor by rules: the one that judges reports, read more strictly, with numbers and diagnoses."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from cardiolens.curation.questions.diagnosis import diagnoses
from cardiolens.curation.questions.numbers import measured
from cardiolens.curation.questions.statement import Found
from cardiolens.curation.questions.strict_patterns import has, has_for, words
from cardiolens.curation.questions.uncertainty import doubt_of
from cardiolens.protocol.tasks.catalogue import Catalogue, Subtask
from cardiolens.report_text.findings import Finding, findings
from cardiolens.report_text.sections import Sentence, sentence_at, sentences


def extract(text: str, sex: str | None, catalogue: Catalogue) -> list[Found]:
    """Every finding of a report, in the order of the catalogue, each checked against the text."""
    plain = without_names(text)
    pieces = list(sentences(plain))
    found = [*_stated(plain, pieces, catalogue), *_measured(plain, pieces, sex)]
    found += diagnoses(plain, pieces, catalogue)
    return [replace(one, quote=text[one.start : one.end]).check(text) for one in found]


def without_names(text: str) -> str:
    """The text with blanks for titles of persons and for the modality, which look like mitral valves."""
    return re.sub(words()["names"], lambda match: " " * len(match[0]), text)


def _stated(text: str, pieces: Sequence[Sentence], catalogue: Catalogue) -> Iterator[Found]:
    for subtask_of, sequence in _fields(catalogue):
        for one in findings(text, catalogue.lexicons[sequence]):
            subtask = subtask_of.get(one.field)
            if subtask is None or one.measured or _is_heading(one):
                continue
            sentence = sentence_at(pieces, one.start)
            written = text[sentence.start : sentence.end]
            if not _is_own(subtask.sequence, sentence, written, text):
                continue
            found = Found(
                subtask.id, one.value, one.start, one.end, one.quote, one.section, one.polarity,
                _certainty(one, written), "rules",
            )  # fmt: skip
            yield replace(found, doubt=doubt_of(found, subtask, written))


def _measured(text: str, pieces: list[Sentence], sex: str | None) -> Iterator[Found]:
    """Numbers; one whose sentence goes on with another examination or an earlier time is not of today."""
    for one in measured(text, pieces, sex):
        rest = text[one.end : sentence_at(pieces, one.start).end]
        clause = re.split(r"[,;]", rest)[0]
        past = has(words()["elsewhere"], rest) or has(words()["over"], clause)
        yield replace(one, certainty="historical") if past else one


def _certainty(one: Finding, sentence: str) -> str:
    """The certainty of a finding, less where its sentence tells of the past or of another examination."""
    if one.certainty != "certain":
        return one.certainty
    if has(words()["over"], sentence) and not has(words()["lasting"], sentence):
        return "historical"
    if has(words()["elsewhere"], sentence):
        return "historical"
    return "uncertain" if has(words()["hedge"], one.quote) else "certain"


def _is_own(sequence: str, sentence: Sentence, written: str, text: str) -> bool:
    """Return whether a sentence, its heading or its section is of a sequence, where that can be told."""
    named = [pattern for pattern in words()["techniques"] if has(pattern, written)]
    if len(named) > 2 or (len(named) > 1 and has(words()["acquired"], written)):
        return False
    if has_for("other_words", sequence, written) and not has_for("named_itself", sequence, written):
        return False
    above = text[sentence.topic.start : sentence.topic.end] if sentence.topic else ""
    pattern = words()["own_words"].get(sequence)
    return pattern is None or sentence.section == sequence or has(pattern, f"{above} {written}")


def _fields(catalogue: Catalogue) -> Iterator[tuple[dict[str, Subtask], str]]:
    for sequence in catalogue.lexicons:
        own = {one.field: one for one in catalogue.subtasks.values() if one.sequence == sequence}
        yield own, sequence


def _is_heading(one: Finding) -> bool:
    """Return whether a finding rests on the heading of a section alone: `LGE:`."""
    return one.quote.rstrip().endswith(":") and len(one.quote.split()) <= 4
