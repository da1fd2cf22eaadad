"""Sentences of a house: headings and whole lines that a group teaches, put into words that the rules read.

A report keeps its own words: what is read of the reworded text is told with the place and the words of the
report itself.
"""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from cardiolens.curation.questions.house_slots import NUMBER, SLOT, WORDS, Slot, filled, slots
from cardiolens.protocol.tasks.house_style import HouseStyle
from cardiolens.report_text.grammar import grammar
from cardiolens.report_text.sections import Sentence, sentences

_MARKS = r"^[ \t\-*•#=~_|\d.)]*"  # before a heading or a list item
_BEGINS = rf"(?:{_MARKS}|(?<=[.!?])[ \t]+)"
_ENDS = r"(?=[ \t]*(?:[.!](?:\s|\Z)|$))"
_LABEL_ENDS = r"(?=[ \t]*(?::|$))"
_STOPS = {".", "!", ":"}
# Cues that turn, doubt, date or limit: free words may hold them only where ours reads them as they stand.
_TURNING = frozenset(
    {"negated", "negated_behind", "prefix", "uncertain", "uncertain_behind", "historical", "hypothetical"}
    | {"exceptions", "sparing", "spared", "contrasts"}
)
_AS_THEY_STAND = re.compile(r"(?::|\b(?:is|are))\s*\{\d*\}")
_LONGEST_CUE = 6  # words
_FLAGS = re.IGNORECASE | re.MULTILINE
_NUMBER = r"\d+(?:[.,]\d+)?"
_WORDS = r"[^\n.;:]{1,60}?"  # within a line and a sentence


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of a reworded text, and the stretch of the report that it stands for."""

    start: int
    end: int
    source_start: int
    source_end: int


@dataclass(frozen=True, slots=True)
class Reworded:
    """A report in words that the rules read."""

    text: str
    stretches: tuple[Stretch, ...]  # that are reworded, in order

    def source(self, start: int, end: int) -> tuple[int, int]:
        """Return where a span stands in the report: all of a sentence of which a part was reworded."""
        first, last = self._stretch_before(start), self._stretch_before(end - 1)
        source_start = start if first is None else _source_of(first, start, first.source_start)
        source_end = end if last is None else _source_of(last, end, last.source_end, is_end=True)
        return source_start, source_end

    def _stretch_before(self, place: int) -> Stretch | None:
        return next((stretch for stretch in reversed(self.stretches) if stretch.start <= place), None)


def _source_of(stretch: Stretch, place: int, edge: int, *, is_end: bool = False) -> int:
    """Return the place in the report: an edge of its sentence within a stretch, else as far behind it."""
    is_within = place <= stretch.end if is_end else place < stretch.end
    return edge if is_within else stretch.source_end + place - stretch.end


def reword(text: str, house: HouseStyle) -> Reworded:
    """Return a report with the headings and sentences of a house in words of ours."""
    parts: list[str] = []
    stretches: list[Stretch] = []
    copied, length = 0, 0
    for start, end, words in _replacements(text, house):
        parts += [text[copied:start], words]
        begins = length + start - copied
        length = begins + len(words)
        stretches.append(Stretch(begins, length, start, end))
        copied = end
    return Reworded("".join([*parts, text[copied:]]), tuple(stretches))


def report_sentences(text: str, house: HouseStyle) -> list[Sentence]:
    """Return the sentences of a report with their places in it, by the headings that its house teaches."""
    reworded = reword(text, house)
    placed = []
    for sentence in sentences(reworded.text):
        start, end = reworded.source(sentence.start, sentence.end)
        placed.append(replace(sentence, start=start, end=end, topic=None, part=None))
    return placed


@dataclass(frozen=True, slots=True)
class _Rule:
    """A pattern of a house, and what it says in words of ours."""

    key: str
    pattern: re.Pattern[str]  # with a group of the whole, then one of each slot
    words: str
    house: HouseStyle
    is_heading: bool = False

    def in_ours(self, match: re.Match[str]) -> str:
        """Return our words, with what stands in the slots of the report."""
        contents = zip(slots(self.key), match.groups()[1:], strict=True)
        words = filled(self.words, {slot: self._value(slot, content) for slot, content in contents})
        # A line without its last stop could be taken for a heading.
        is_stopped = match.string[match.end() :].lstrip(" \t")[:1] in _STOPS
        return words if self.is_heading or is_stopped or not words else f"{words}."

    def is_turned(self, match: re.Match[str]) -> bool:
        """Return whether free words deny or limit what ours says without or around them: `scar {} apical`."""
        ends = [slot.end() for slot in SLOT.finditer(self.words)]
        safe = {
            slot
            for slot, end in zip(slots(self.words), ends, strict=True)
            if any(place.end() == end for place in _AS_THEY_STAND.finditer(self.words))
        }
        return bool(self.words) and any(
            slot[0] == WORDS and slot not in safe and _turns(content)
            for slot, content in zip(slots(self.key), match.groups()[1:], strict=True)
        )

    def _value(self, slot: Slot, content: str) -> str:
        values = self.house.values.get(slot[0], {})
        spelled = {" ".join(theirs.lower().split()): ours for theirs, ours in values.items()}
        return spelled.get(" ".join(content.lower().split()), content)


def _replacements(text: str, house: HouseStyle) -> Iterator[tuple[int, int, str]]:
    """Yield the spans that are reworded, none within another, the longest first; and their words."""
    found = [
        (*match.span("span"), rule, match)
        for rule in _rules(house)
        for match in rule.pattern.finditer(text)
        if not rule.is_turned(match)
    ]
    reached = 0
    for start, end, rule, match in sorted(found, key=lambda span: (span[0], -span[1])):
        if start >= reached:
            yield start, end, rule.in_ours(match)
            reached = end


@functools.lru_cache(maxsize=8)
def _rules(house: HouseStyle) -> tuple[_Rule, ...]:
    """Return the rules of a house; of two that fit the same span the first holds."""
    of_headings = [
        _Rule(
            key,
            re.compile(rf"{_MARKS}(?P<span>{_pattern(key, house)}){_LABEL_ENDS}", _FLAGS),
            words,
            house,
            is_heading=True,
        )
        for key, words in house.headings.items()
    ]
    of_sentences = [
        _Rule(key, re.compile(rf"{_BEGINS}(?P<span>{_pattern(key, house)}){_ENDS}", _FLAGS), words, house)
        for key, words in house.sentences.items()
    ]
    return (*of_headings, *of_sentences)


def _turns(words: str) -> bool:
    """Return whether words hold a cue that turns, doubts, dates or limits what stands around them."""
    letters = re.findall(r"[^\W_]+", words.lower())
    phrases = (
        tuple(letters[start:end])
        for start in range(len(letters))
        for end in range(start + 1, min(start + _LONGEST_CUE, len(letters)) + 1)
    )
    tags = grammar().tags
    return any(phrase in tags and tags[phrase].kind in _TURNING for phrase in phrases)


def _pattern(key: str, house: HouseStyle) -> str:
    """Return the pattern of a phrase with slots; runs of spaces are alike."""
    pieces, at = [], 0
    for (kind, _), match in zip(slots(key), SLOT.finditer(key), strict=True):
        pieces.append(_literal(key[at : match.start()]))
        values = sorted(house.values.get(kind, ()), key=len, reverse=True)
        content = {NUMBER: _NUMBER, WORDS: _WORDS}.get(kind) or "|".join(map(_literal, values))
        pieces.append(f"({content})")
        at = match.end()
    return "".join([*pieces, _literal(key[at:])])


def _literal(words: str) -> str:
    return r"[ \t]+".join(map(re.escape, re.split(r"\s+", words)))
