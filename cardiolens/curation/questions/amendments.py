"""Amendments of a report: an addendum or a spoken correction takes the answers of its sequences away."""

import re
from collections.abc import Iterator

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
    """Return the subtasks whose answers amendments may change."""
    sequences = {sequence for span in _notes(text) for sequence in _sequences(text, span, catalogue)}
    if not sequences:
        return frozenset()
    return frozenset(one.id for one in catalogue.subtasks.values() if one.sequence in {*sequences, "multi"})


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
        kinds = {one.kind for one in mentions if one.text not in _PLACES}
        if kinds & {"name", "state"} or (name == "cine" and "structure" in kinds):
            named.add(name)
    return named or {*catalogue.lexicons}
