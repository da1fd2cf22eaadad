"""Sentences of a house: headings and whole lines that a group teaches, put into words that the rules read.

A report keeps its own words: what is read of the reworded text is told with the place and the words of the
report itself.
"""

import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from cardiolens.curation.questions.house_slots import NUMBER, SLOT, WORDS, Slot, filled, slots
from cardiolens.protocol.tasks.phrases import HouseStyle, Phrase
from cardiolens.report_text.grammar import grammar
from cardiolens.report_text.sections import Sentence, sentences

_MARKS = r"^[ \t\-*•#=~_|]*(?:\d{1,2}[.)][ \t]+)?[ \t\-*•|]*"  # before a heading or a list item
_SPACE = r"[^\S\n]"  # of any kind within a line, as a hard one, or the \r before its end
_BEGINS = rf"(?:{_MARKS}|(?<=[.!?]){_SPACE}+)"
_ENDS = rf"(?={_SPACE}*(?:[.!](?:\s|\Z)|$))"
_LABEL_ENDS = rf"(?={_SPACE}*(?::|$))"
_STOPS = {".", "!", ":"}
# Cues that turn, doubt, date or limit: free words may hold them only where ours reads them as they stand.
_TURNING = frozenset(
    {"negated", "negated_behind", "prefix", "uncertain", "uncertain_behind", "historical", "hypothetical"}
    | {"exceptions", "sparing", "spared", "contrasts"}
)
_AS_THEY_STAND = re.compile(r"(?::|\b(?:is|are))\s*\{\d*\}")
_LONGEST_PHRASE = 6  # words
_FLAGS = re.IGNORECASE | re.MULTILINE
_NUMBER = r"\d+(?:[.,]\d+)?"
_WORDS = r"[^\s.;:]+(?:[ \t][^\s.;:]+){0,9}?"  # within a line and a sentence


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


@functools.lru_cache(maxsize=64)
def reword(text: str, house: HouseStyle) -> Reworded:
    """Return a report with the headings and sentences of a house in words of ours.

    What stands below a heading such as "History" keeps its words: a label in ours would end that section.
    """
    labelled = _replaced(text, _replacements(text, _rules_of_headings(house)))
    silent = [
        labelled.source(sentence.start, sentence.end)
        for sentence in (sentences(labelled.text) if house.sentences else ())
        if sentence.section == "silent"
    ]
    spoken = [
        replacement
        for replacement in _replacements(text, (*_rules_of_headings(house), *_rules_of_sentences(house)))
        if replacement.rule.is_heading or not any(start <= replacement.start < end for start, end in silent)
    ]
    return _replaced(text, spoken)


def _replaced(text: str, replacements: Iterable["_Replacement"]) -> Reworded:
    parts: list[str] = []
    stretches: list[Stretch] = []
    copied, length = 0, 0
    for replacement in replacements:
        parts += [text[copied : replacement.start], replacement.words]
        begins = length + replacement.start - copied
        length = begins + len(replacement.words)
        stretches.append(Stretch(begins, length, replacement.start, replacement.end))
        copied = replacement.end
    return Reworded("".join([*parts, text[copied:]]), tuple(stretches))


def report_sentences(text: str, house: HouseStyle) -> list[Sentence]:
    """Return the sentences of a report with their places in it, by the headings that its house teaches."""
    reworded = reword(text, house)
    placed = []
    for sentence in sentences(reworded.text):
        start, end = reworded.source(sentence.start, sentence.end)
        placed.append(replace(sentence, start=start, end=end, topic=None, part=None))
    if not placed:
        return [Sentence(0, len(text), "any", opens=False, asks=False, topic=None)]
    return [replace(placed[0], start=0), *placed[1:]]  # what says nothing before it is of the first


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
        ours = list(zip(slots(self.words), SLOT.finditer(self.words), strict=True))
        ends = {place.end() for place in _AS_THEY_STAND.finditer(self.words)}
        safe = {slot for slot, place in ours if place.end() in ends}
        taken = {slot for slot, _ in ours}
        return any(
            slot[0] == WORDS and slot not in safe and self._changes(content, is_taken=slot in taken)
            for slot, content in zip(slots(self.key), match.groups()[1:], strict=True)
        )

    def _changes(self, content: str, *, is_taken: bool) -> bool:
        """Return whether free words may change what is said: taken over, left out, or of a silent line."""
        phrases = _phrases(content)
        if is_taken:
            tags = grammar().tags
            return any(phrase in tags and tags[phrase].kind in _TURNING for phrase in phrases)
        if not self.words:
            return not phrases.isdisjoint(self.house.findings)
        filling = {word for phrase in phrases & self.house.fillers for word in phrase}
        return any(word not in filling and not word.isdigit() for phrase in phrases for word in phrase)

    def _value(self, slot: Slot, content: str) -> str:
        values = self.house.values.get(slot[0], {})
        spelled = {" ".join(theirs.lower().split()): ours for theirs, ours in values.items()}
        return spelled.get(" ".join(content.lower().split()), content)


@dataclass(frozen=True, slots=True)
class _Replacement:
    """A span of a report, and what stands in its place."""

    start: int
    end: int
    words: str
    rule: _Rule


def key_of(sentence: str) -> str:
    """Return a sentence as an entry that would teach it: without its list mark, with `#` for its numbers."""
    words = " ".join(re.sub(_MARKS, "", sentence.strip()).split())
    return re.sub(rf"(?<![^\W_]){_NUMBER}", NUMBER, words).rstrip(".")  # the 2 of T2 is of a name


def _replacements(text: str, rules: Sequence[_Rule]) -> Iterator[_Replacement]:
    """Yield what is reworded, none within another, the longest first.

    What free words change for one rule stays as it is for all others with free words.
    """
    found = [(match, rule) for rule in rules for match in rule.pattern.finditer(text)]
    turned = [match.span("span") for match, rule in found if rule.is_turned(match)]
    reached = 0
    for match, rule in sorted(found, key=lambda pair: (pair[0].start("span"), -pair[0].end("span"))):
        start, end = match.span("span")
        is_open = any(kind == WORDS for kind, _ in slots(rule.key))
        if start < reached or (is_open and any(first < end and start < last for first, last in turned)):
            continue
        words = rule.in_ours(match)
        if not words and text[end : end + 1] in (".", "!"):
            end += 1  # a stop alone would part a heading from what stands below it
        yield _Replacement(start, end, words, rule)
        reached = end


@functools.lru_cache(maxsize=8)
def _rules_of_headings(house: HouseStyle) -> tuple[_Rule, ...]:
    return tuple(
        _Rule(
            key,
            re.compile(rf"{_MARKS}(?P<span>{_pattern(key, house)}){_LABEL_ENDS}", _FLAGS),
            words,
            house,
            is_heading=True,
        )
        for key, words in house.headings.items()
    )


@functools.lru_cache(maxsize=8)
def _rules_of_sentences(house: HouseStyle) -> tuple[_Rule, ...]:
    """Return the rules of a house; of two that fit the same span the first holds."""
    return tuple(
        _Rule(key, re.compile(rf"{_BEGINS}(?P<span>{_pattern(key, house)}){_ENDS}", _FLAGS), words, house)
        for key, words in house.sentences.items()
    )


def _phrases(words: str) -> frozenset[Phrase]:
    """Return all phrases of a text, up to a number of words."""
    letters = re.findall(r"[^\W_]+", words.lower())
    return frozenset(
        tuple(letters[start:end])
        for start in range(len(letters))
        for end in range(start + 1, min(start + _LONGEST_PHRASE, len(letters)) + 1)
    )


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
    return rf"{_SPACE}+".join(map(re.escape, re.split(r"\s+", words)))
