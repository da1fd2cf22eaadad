"""Extraction by rules: the report reader of scoring, made stricter, plus numbers and diagnoses."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from cardiolens.curation.questions.amendments import amended_subtasks
from cardiolens.curation.questions.diagnosis import diagnoses
from cardiolens.curation.questions.draft_reasons import Reason
from cardiolens.curation.questions.glossary import headings_of, with_known_words
from cardiolens.curation.questions.numbers import measured
from cardiolens.curation.questions.statement import ReportStatement
from cardiolens.curation.questions.strict_patterns import has, has_for, words
from cardiolens.curation.questions.uncertainty import doubt_of
from cardiolens.protocol.tasks.catalogue import Catalogue, Subtask
from cardiolens.report_text.findings import Finding, findings
from cardiolens.report_text.grammar import grammar
from cardiolens.report_text.mentions import Mention, reader
from cardiolens.report_text.report_layout import plain
from cardiolens.report_text.sections import Sentence, heading_above, pieces_of, sentence_at

SAYING = frozenset({"place", "grade", "predicate", "verb", "negated", "negated_behind", "measure"})


def extract(text: str, sex: str | None, catalogue: Catalogue) -> list[ReportStatement]:
    """Extract the statements of a report, each with its quote and what leaves it in doubt."""
    words_only = plain(without_names(text))
    pieces = pieces_of(words_only, headings_of(catalogue))
    statements = [*_stated(words_only, pieces, catalogue), *_measured(words_only, pieces, sex, catalogue)]
    statements += diagnoses(words_only, pieces, catalogue)
    amended = amended_subtasks(text, catalogue)
    checked = []
    for statement in statements:
        doubt = (
            Reason.AMENDED
            if statement.subtask in amended
            else _doubt(statement, words_only, pieces, catalogue)
        )
        quoted = replace(statement, quote=text[statement.start : statement.end])
        checked.append((quoted if doubt is None else replace(quoted, doubt=doubt)).check(text))
    return checked


def _doubt(
    statement: ReportStatement, text: str, pieces: Sequence[Sentence], catalogue: Catalogue
) -> Reason | None:
    """Return why a statement that is certain by its own words is none by its sentence."""
    if statement.certainty != "certain":
        return None
    subtask, sentence = catalogue[statement.subtask], sentence_at(pieces, statement.start)
    conditions = [words()["conditions"].get(kind) for kind in (subtask.id, subtask.sequence)]
    if any(pattern and has(pattern, text[sentence.start : sentence.end]) for pattern in conditions):
        return Reason.OTHER_STATE
    return Reason.NAMED_ONLY if _is_named_only(statement, sentence, text, catalogue) else None


def _mentions(text: str, start: int, end: int, subtask: Subtask, catalogue: Catalogue) -> list[Mention]:
    return reader(catalogue.lexicons[subtask.sequence]).mentions(text, start, end)


def _is_named_only(statement: ReportStatement, sentence: Sentence, text: str, catalogue: Catalogue) -> bool:
    """Return whether a finding is named, and nothing is said of it: `LGE`, `Scar:`."""
    subtask = catalogue[statement.subtask]
    normal = {option.text for option in subtask.options if option.normal}
    is_affirmed = statement.polarity == "affirmed" and statement.value not in normal
    if statement.subtask in words()["listed"]:
        mentions = _mentions(text, sentence.start, sentence.end, subtask, catalogue)
        return is_affirmed and SAYING.isdisjoint(mention.kind for mention in mentions)
    if statement.subtask not in words()["named"]:
        return False
    mentions = _mentions(text, statement.start, statement.end, subtask, catalogue)
    is_bare = is_affirmed and SAYING.isdisjoint(mention.kind for mention in mentions)
    return is_bare or has(words()["quality"], statement.quote)


def without_names(text: str) -> str:
    """Blank out titles of persons and the modality (`MR`), which look like mitral regurgitation."""
    return re.sub(words()["names"], lambda match: " " * len(match[0]), text)


def _stated(text: str, pieces: Sequence[Sentence], catalogue: Catalogue) -> Iterator[ReportStatement]:
    for sequence, lexicon in catalogue.lexicons.items():
        subtask_of = {one.field: one for one in catalogue.subtasks.values() if one.sequence == sequence}
        for finding in findings(text, lexicon):
            subtask = subtask_of.get(finding.field)
            if subtask is None or finding.measured or _is_heading(finding):
                continue
            sentence = sentence_at(pieces, finding.start)
            phrase = text[sentence.start : sentence.end]
            known = with_known_words(phrase, catalogue)
            if not _is_own(subtask.sequence, sentence, known, text):
                continue
            if finding.quote.strip() == phrase.strip() and _is_known_heading(phrase):
                continue
            statement = ReportStatement(
                subtask.id, finding.value, finding.start, finding.end, finding.quote, finding.section,
                finding.polarity,
                _certainty(finding, phrase), "rules",
            )  # fmt: skip
            doubt = doubt_of(statement, subtask, phrase)
            if finding.is_assumed and subtask.id in words()["of_named_structure"]:
                doubt = doubt or Reason.OTHER_STRUCTURE
            yield replace(statement, doubt=doubt)


def _measured(
    text: str, pieces: Sequence[Sentence], sex: str | None, catalogue: Catalogue
) -> Iterator[ReportStatement]:
    """Yield measurements; one followed by a mention of another or earlier examination is historical."""
    for statement in measured(text, pieces, sex):
        rest = text[statement.end : sentence_at(pieces, statement.start).end]
        clause = re.split(r"[,;]", rest)[0]
        past = has(words()["elsewhere"], rest) or has(words()["over"], clause)
        sentence = sentence_at(pieces, statement.start)
        mentions = _mentions(text, sentence.start, sentence.end, catalogue[statement.subtask], catalogue)
        if any(mention.kind == "hypothetical" for mention in mentions):
            yield replace(statement, certainty="hypothetical")  # `her mother has an LVEF of 20 %`
        elif _is_graded_otherwise(statement, rest, catalogue):
            yield replace(statement, doubt=Reason.NUMBER_AGAINST_WORDS)
        else:
            yield replace(statement, certainty="historical") if past else statement


def _is_graded_otherwise(statement: ReportStatement, rest: str, catalogue: Catalogue) -> bool:
    """Return whether the words right behind a number give it another grade: `LVEF 35 %, normal`."""
    behind = re.match(r"[\s,;(–-]*(?P<first>[a-z]+)(?P<further>[^,;]*)", rest, re.IGNORECASE)
    subtask = catalogue[statement.subtask]
    value = next((option for option in subtask.options if option.text == statement.value), None)
    if behind is None or value is None:
        return False
    if has(r"^(normal|preserved)\b", behind["first"]):
        return not value.normal
    allowed = {
        key
        for grade, keys in words()["means"].items()
        if statement.subtask in keys and has(rf"^(?:{grade})", behind["first"])
        for key in keys[statement.subtask]
    }
    return bool(allowed) and value.key not in allowed


def _certainty(finding: Finding, sentence: str) -> str:
    """Return the certainty of a finding; lower if its sentence is about the past or another examination."""
    if finding.certainty != "certain":
        return finding.certainty
    if has(words()["over"], sentence) and not has(words()["lasting"], sentence):
        return "historical"
    if has(words()["elsewhere"], sentence):
        return "historical"
    return "uncertain" if has(words()["hedge"], finding.quote) else "certain"


def _is_own(sequence: str, sentence: Sentence, phrase: str, text: str) -> bool:
    """Return whether a sentence is about a sequence, judged by its words, heading and section."""
    techniques = [pattern for pattern in words()["techniques"] if has(pattern, phrase)]
    if len(techniques) > 2 or (len(techniques) > 1 and has(words()["acquired"], phrase)):
        return False
    if has_for("other_words", sequence, phrase) and not has_for("named_itself", sequence, phrase):
        return False
    pattern = words()["own_words"].get(sequence)
    above = heading_above(sentence, text)
    return pattern is None or sentence.section == sequence or has(pattern, f"{above} {phrase}")


def _is_known_heading(phrase: str) -> bool:
    """Return whether a line is nothing but the heading of a section: `LGE`."""
    return tuple(re.findall(r"[^\W_]+", phrase.lower())) in grammar().headings


def _is_heading(finding: Finding) -> bool:
    """Return whether a finding consists only of a section heading: `LGE:`."""
    return finding.quote.rstrip().endswith(":") and len(finding.quote.split()) <= 4
