"""Amendments of a report: what an addendum, or a speaker who starts anew, may have taken back."""

import re
from collections.abc import Iterator

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


def amended_sequences(text: str, catalogue: Catalogue) -> set[str]:
    """Return the sequences whose findings an amendment may change: all of them if it names none."""
    sequences: set[str] = set()
    for start, end in _amendments(text):
        named = {name for name in catalogue.lexicons if _names(text, start, end, name, catalogue)}
        sequences |= named or {*catalogue.lexicons}
    return sequences


def _amendments(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans from the sentence of an amending word to the end of its paragraph."""
    for match in _AMENDS.finditer(text):
        start = max(text.rfind("\n", 0, match.start()), text.rfind(". ", 0, match.start())) + 1
        gap = text.find("\n\n", match.end())
        end = gap if gap >= 0 else len(text)
        if not (_HARMLESS.fullmatch(text, start, end) or _OF_OTHERS.search(text, start, end)):
            yield start, end


def _names(text: str, start: int, end: int, sequence: str, catalogue: Catalogue) -> bool:
    mentions = reader(catalogue.lexicons[sequence]).mentions(text, start, end)
    return any(
        mention.kind in ("name", "state") or "pericardium" in mention.names
        for mention in mentions
        if sequence == "cine" or mention.kind != "structure"
    )
