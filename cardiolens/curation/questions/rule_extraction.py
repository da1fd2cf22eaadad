"""Extraction by rules: the report reader of scoring, made stricter, plus numbers and diagnoses."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

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

_AMENDS = re.compile(
    r"\b(?:addend(?:um|a)|errat(?:um|a)|corrigend(?:um|a)|correction(?=\s*[:,])|"
    r"corrected (?:to|report|version)|amend(?:ed|ment)|retracted (?:report|statement)|"
    r"revised (?:report|version)|disregard|ignore the|"
    r"late entry|update(?=\s*[:\d])|p\.?s\.?(?=\s*:)|"
    r"typo\w*|overlooked|(?:inter|ex)changed|swapped|mixed up|mix-?up|mis(?:labell?ed|typed|dictated|read)|"
    r"wrong (?:\w+ )?(?:side|patient|column|row|field|box|way round|ventricle|order|report|template|text)|"
    r"(?:values?|figures?|numbers?|findings?|fields?|columns?|text) above (?:are|is|were|was|must|should)|"
    r"(?<!not )re-?(?:read|reviewed|measured|calculated|analysed|analyzed|contoured)(?=\W)|"
    r"(?:second|further|repeat) (?:look|review|reading)|disagree\w*|please read|"
    r"should (?:say|have (?:said|read|been))|(?:sentence|statement|wording) above|"
    r"supersed\w*|(?:strike|scratch|delete|cancel) (?:that|this)|start again|should read|in error)\b",
    re.IGNORECASE,
)
_HARMLESS = re.compile(  # `Addendum: discussed with Dr Low.`, `no change to the findings`
    r"(?:[^\n.]*?\b(?:(?:discussed|reviewed|communicated) (?:with|at|to)|telephoned to|copied to|sent to"
    r"|no changes?(?: to (?:the )?(?:cardiac )?(?:findings|report|conclusion|part))?|without change"
    r"|(?:is|are|remains?) (?:unchanged|confirmed))\b(?![^\n.]*\b(?:but|except|however|apart|only)\b)"
    r"[^\n.]*(?:\.\s*|\n|$))+",
    re.IGNORECASE,
)
_PLACES = frozenset({"wall", "walls", "free wall"})  # name no finding
_REST_OF_HEADING = re.compile(r"[^\n:]*:?\s*")


def amended_subtasks(text: str, catalogue: Catalogue) -> frozenset[str]:
    """Return the subtasks with answers that amendments may change."""
    sequences = {sequence for span in _notes(text) for sequence in _sequences(text, span, catalogue)}
    if not sequences:
        return frozenset()
    return frozenset(
        subtask.id for subtask in catalogue.subtasks.values() if subtask.sequence in {*sequences, "multi"}
    )


def _notes(text: str) -> Iterator[tuple[int, int]]:
    """Yield the span of each amendment: its sentence, and what follows up to the end of the paragraph."""
    end = 0
    for match in _AMENDS.finditer(text):
        if match.start() < end:
            continue
        line = text.rfind("\n", 0, match.start()) + 1
        is_note = has(words()["note"], text[line : match.end()])
        start = line if is_note else max(line, text.rfind(". ", 0, match.start()) + 1)
        heading = _REST_OF_HEADING.match(text, match.end())
        said = heading.end() if heading and is_note else match.end()
        gap = text.find("\n\n", said)
        end = gap if gap >= 0 else len(text)
        if not _HARMLESS.fullmatch(text, start, end):
            yield start, end


def _sequences(text: str, span: tuple[int, int], catalogue: Catalogue) -> set[str]:
    """Return the sequences that a span names; all if it names none."""
    named = set()
    for name, lexicon in catalogue.lexicons.items():
        mentions = reader(lexicon).mentions(text, *span)
        kinds = {mention.kind for mention in mentions if mention.text not in _PLACES}
        if kinds & {"name", "state"} or (name == "cine" and "structure" in kinds):
            named.add(name)
    return named or {*catalogue.lexicons}


SAYING = frozenset({"place", "grade", "predicate", "verb", "negated", "negated_behind", "measure"})


def extract(text: str, sex: str | None, catalogue: Catalogue) -> list[ReportStatement]:
    """Extract the statements of a report, each with its quote and what leaves it in doubt."""
    words_only = plain(_without_names(text))
    pieces = pieces_of(words_only, headings_of(catalogue))
    statements = [*_stated(words_only, pieces, catalogue), *_measured(words_only, pieces, sex, catalogue)]
    statements += diagnoses(words_only, pieces, catalogue)
    amended = amended_subtasks(text, catalogue)
    quoted = []
    for statement in statements:
        is_amended = statement.subtask in amended
        doubt = Reason.AMENDED if is_amended else _doubt(statement, words_only, pieces, catalogue)
        quote = text[statement.start : statement.end]
        quoted.append(replace(statement, quote=quote, doubt=doubt or statement.doubt))
    return quoted


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


def _without_names(text: str) -> str:
    """Blank out what looks like a finding: titles of persons, the modality (`MR`), and normal ranges."""
    pattern = rf"{words()['names']}|(?i:{words()['norms']})"
    return re.sub(pattern, lambda match: " " * len(match[0]), text)


def _stated(text: str, pieces: Sequence[Sentence], catalogue: Catalogue) -> Iterator[ReportStatement]:
    for sequence, lexicon in catalogue.lexicons.items():
        subtask_of = {
            subtask.field: subtask for subtask in catalogue.subtasks.values() if subtask.sequence == sequence
        }
        for finding in findings(text, lexicon):
            subtask = subtask_of.get(finding.field)
            if subtask is None or finding.measured or _is_heading(finding):
                continue
            sentence = sentence_at(pieces, finding.start)
            phrase = text[sentence.start : sentence.end]
            known = with_known_words(phrase, catalogue)
            if not _is_own(subtask.sequence, sentence, known, text):
                continue
            heading = tuple(re.findall(r"[^\W_]+", phrase.lower()))
            if finding.quote.strip() == phrase.strip() and heading in grammar().headings:
                continue  # a line that opens a section, and says nothing: `LGE`
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


def _is_heading(finding: Finding) -> bool:
    """Return whether a finding consists only of a section heading: `LGE:`."""
    return finding.quote.rstrip().endswith(":") and len(finding.quote.split()) <= 4
