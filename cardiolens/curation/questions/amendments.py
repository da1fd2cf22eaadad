"""Amendments of a report: what an addendum, or a speaker who starts anew, may have taken back."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from cardiolens.curation.questions.amendment_scope import part_of, parts_named
from cardiolens.curation.questions.statement import ReportStatement
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


@dataclass(frozen=True)
class _Amendment:
    """A span that amends, and the subtasks whose answers it may change."""

    start: int
    end: int
    changed: frozenset[str]
    only_adds: bool = False  # a note that names what it is of, and takes nothing back

    def holds(self, statement: ReportStatement) -> bool:
        return self.start <= statement.start < self.end


class Amendments:
    """The amendments of a report, and what they leave of its statements."""

    def __init__(self, text: str, catalogue: Catalogue, statements: Sequence[ReportStatement]) -> None:
        self._catalogue = catalogue
        self._statements = statements
        self._amendments = list(_amendments(text, catalogue))

    def take(self, statement: ReportStatement) -> bool:
        """Return whether a statement may have been taken back, or be what a correction only discusses."""
        if not any(statement.subtask in one.changed for one in self._amendments):
            return False
        return not self._is_added(statement)

    def _is_added(self, statement: ReportStatement) -> bool:
        """Return whether a note is the only one to speak of the part that a statement is of."""
        part = part_of(self._catalogue[statement.subtask])
        of_part = [one for one in self._statements if part_of(self._catalogue[one.subtask]) == part]
        touching = [one for one in self._amendments if statement.subtask in one.changed]
        return (
            part != "multi"
            and len(touching) == 1
            and touching[0].only_adds
            and all(touching[0].holds(one) for one in of_part)
        )


def _amendments(text: str, catalogue: Catalogue) -> Iterator[_Amendment]:
    """Yield the amendments: each from the sentence of an amending word to the end of its paragraph."""
    note_end = 0
    for match in _AMENDS.finditer(text):
        if match.start() < note_end:
            continue
        line = text.rfind("\n", 0, match.start()) + 1
        is_note = has(words()["amendments"]["note"], text[line : match.end()])
        start = line if is_note else max(line, text.rfind(". ", 0, match.start()) + 1)
        said = re.compile(r"[^\n:]*:?\s*").match(text, match.end())
        gap = text.find("\n\n", said.end() if said and is_note else match.end())
        end = gap if gap >= 0 else len(text)
        note_end = end if is_note else note_end
        if _HARMLESS.fullmatch(text, start, end) or _OF_OTHERS.search(text, start, end):
            continue
        if is_note:
            yield _of_note(text, start, end, catalogue)
        else:
            yield _Amendment(start, end, _of_sequences(_sequences(text, start, end, catalogue), catalogue))


def _of_note(text: str, start: int, end: int, catalogue: Catalogue) -> _Amendment:
    note = text[start:end]
    parts = parts_named(note, catalogue)
    changed = frozenset(
        subtask.id
        for subtask in catalogue.subtasks.values()
        if parts is None or subtask.sequence == "multi" or part_of(subtask) in parts
    )
    takes_back = parts is None or has(words()["amendments"]["takes_back"], note)
    return _Amendment(start, end, changed, only_adds=not takes_back)


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
