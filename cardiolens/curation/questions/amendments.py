"""Amendments of a report: what an addendum, or a speaker who starts anew, may have taken back."""

import re
from collections.abc import Collection, Iterator

from cardiolens.curation.questions.amendment_scope import subtasks_beside, subtasks_named
from cardiolens.curation.questions.strict_patterns import has, words
from cardiolens.protocol.tasks.catalogue import Catalogue
from cardiolens.report_text.mentions import reader

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
    r"should (?:say|have (?:said|read|been))|"
    r"(?:sentence|statement|wording) above|"
    r"supersed\w*|(?:strike|scratch|delete|cancel) (?:that|this)|start again|should read|in error)\b",
    re.IGNORECASE,
)
_REST_OF_HEADING = re.compile(r"[^\n:]*:?\s*")
_SAID_TO = r"(?:discussed|reviewed|communicated) (?:with|at|to)|telephoned to|copied to|sent to"
_UNCHANGED = (
    r"no changes?(?: to (?:the )?(?:findings|report|conclusion))?|without change"
    r"|(?:is|are|remains?) unchanged|(?:is|are) confirmed"
)
_OF_OTHERS = re.compile(  # `A nodule of the lung. The cardiac part of the report is unchanged.`
    r"\bno changes? to the cardiac (?:report|findings|part)\b"
    r"|\bcardiac (?:part|report|findings)\b[^.\n]* (?:is|are|remains?) unchanged",
    re.IGNORECASE,
)
_HARMLESS = re.compile(
    rf"(?:[^\n.]*?\b(?:{_SAID_TO}|{_UNCHANGED})\b(?![^\n.]*\b(?:but|except|however|apart|only)\b)"
    r"[^\n.]*(?:\.\s*|\n|$))+",
    re.IGNORECASE,
)


# The name of a report that has an addendum below, and no addendum: `MRI HEART REPORT (FINAL + ADDENDUM)`.
_TITLE = re.compile(
    r"[^\n:]*\breport\b[^\n:.]*\(?\b(?:final )?(?:\+|&|and|with) addendum\)?[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_SPOKEN = re.compile(r"correction|(?:strike|scratch|delete|cancel) (?:that|this)", re.IGNORECASE)
_END = re.compile(r"[.;!?](?=\s|$)|\n")


def amended_subtasks(text: str, catalogue: Catalogue) -> frozenset[str]:
    """Return the subtasks whose answers amendments may change."""
    return frozenset().union(*_amended(text, catalogue))


def _amended(text: str, catalogue: Catalogue) -> Iterator[frozenset[str]]:
    """Yield what each amendment may change, from the sentence of an amending word to its paragraph's end."""
    note_end = 0
    for match in _AMENDS.finditer(text):
        if match.start() < note_end:
            continue
        line = text.rfind("\n", 0, match.start()) + 1
        if _is_title(text, line, match.end()):
            continue
        is_note = has(words()["amendments"]["note"], text[line : match.end()])
        start = line if is_note else max(line, text.rfind(". ", 0, match.start()) + 1)
        heading = _REST_OF_HEADING.match(text, match.end())
        gap = text.find("\n\n", heading.end() if heading and is_note else match.end())
        end = gap if gap >= 0 else len(text)
        note_end = end if is_note else note_end
        if _HARMLESS.fullmatch(text, start, end) or _OF_OTHERS.search(text, start, end):
            continue
        if is_note:
            yield subtasks_named(text[start:end], catalogue)
        elif _SPOKEN.fullmatch(match[0]):
            own, phrase = _around(text, match)
            yield subtasks_beside(own, phrase, catalogue)
        else:
            yield _of_sequences(_sequences(text, start, end, catalogue), catalogue)


def _is_title(text: str, line: int, end: int) -> bool:
    """Return whether an amending word is of the title of a report, and a note with the addendum is below."""
    title = _TITLE.match(text, line)
    if title is None or title.end() < end:
        return False
    note = words()["amendments"]["note"]
    return any(has(note, below) for below in text[title.end() :].splitlines())


def _around(text: str, match: re.Match[str]) -> tuple[str, str]:
    """The sentence of a spoken correction; with it the one before, which may be meant, and the one behind."""
    ends = [0, *(stop.end() for stop in _END.finditer(text)), len(text)]
    before = [end for end in ends if end <= match.start()][-2:]
    behind = [end for end in ends if end >= match.end()][:2]
    return text[before[-1] : behind[0]], text[before[0] : behind[-1]]


def _sequences(text: str, start: int, end: int, catalogue: Catalogue) -> Collection[str]:
    """Return the sequences that a span names; all if it names none."""
    return {name for name in catalogue.lexicons if _names(text, start, end, name, catalogue)} or {
        *catalogue.lexicons
    }


def _of_sequences(sequences: Collection[str], catalogue: Catalogue) -> frozenset[str]:
    return frozenset(
        subtask.id for subtask in catalogue.subtasks.values() if subtask.sequence in {*sequences, "multi"}
    )


def _names(text: str, start: int, end: int, sequence: str, catalogue: Catalogue) -> bool:
    mentions = reader(catalogue.lexicons[sequence]).mentions(text, start, end)
    return any(
        mention.kind in ("name", "state") or "pericardium" in mention.names
        for mention in mentions
        if sequence == "cine" or mention.kind != "structure"
    )
