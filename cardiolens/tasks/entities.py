"""Rule-based extraction of clinical entities from report text, with negation and location (protocol 3.2)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from cardiolens.tasks.catalogue import Catalogue, Subtask
from cardiolens.tasks.lexicon import Attribute, Finding, Lexicon

Entity = tuple[str, str]  # report field, option text

_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n+|;")
_STATEMENT_BREAK = re.compile(r",? and |, ")
_SPARED = re.compile(r"(?: walls?| segments?| level)? (?:is |are )?spared\b")
_CHAMBER_FOLLOWS = 14  # characters: "dilated right ventricle", "enlargement of the right ventricle"


@dataclass(frozen=True)
class Mention:
    """A match of a lexicon entry in a sentence, at the characters start..end."""

    start: int
    end: int
    what: Finding | Attribute
    negated: bool

    @property
    def length(self) -> int:
        return self.end - self.start

    def distance(self, other: "Mention") -> int:
        """Number of characters between two mentions; 0 where they touch or overlap."""
        return max(self.start - other.end, other.start - self.end, 0)


def extract(text: str, sequence: str, catalogue: Catalogue) -> frozenset[Entity]:
    """Extract the entities of a report's findings and impression, for the report fields of one sequence.

    An attribute belongs to the nearest finding of its sentence, or without one to the last finding before it.
    """
    lexicon = catalogue.lexicons[sequence]
    entities: list[Entity] = []
    last: Mention | None = None
    for sentence in sentences(text, lexicon):
        mentions = _mentions(sentence, lexicon)
        findings = [mention for mention in mentions if isinstance(mention.what, Finding)]
        for mention in findings:
            entities += _asserted(mention)
        for mention in mentions:
            if isinstance(mention.what, Attribute) and not mention.negated:
                nearest = min(findings, key=mention.distance, default=last)
                if nearest and _bears(nearest, mention.what):
                    entities.append((mention.what.field, mention.what.value))
        last = _rightmost(findings) or last
    fields = {
        subtask.field: subtask for subtask in catalogue.subtasks.values() if subtask.sequence == sequence
    }
    return frozenset(_resolve(entities, fields))


def sentences(text: str, lexicon: Lexicon) -> Iterator[str]:
    """Yield lower-case sentences, split also at words of contrast ("but")."""
    for sentence in _SENTENCE_END.split(text.lower()):
        start = 0
        for contrast in lexicon.splits.finditer(sentence):
            yield sentence[start : contrast.start()]
            start = contrast.end()
        yield sentence[start:]


def _asserted(mention: Mention) -> list[Entity]:
    what = mention.what
    assert isinstance(what, Finding)
    values = (what.normal,) if mention.negated else what.values
    return [(what.field, value) for value in values]


def _bears(finding: Mention, attribute: Attribute) -> bool:
    what = finding.what
    return isinstance(what, Finding) and what.attributes == attribute.group and not finding.negated


def _rightmost(findings: list[Mention]) -> Mention | None:
    return max(findings, key=lambda mention: mention.start, default=None)


def _mentions(sentence: str, lexicon: Lexicon) -> list[Mention]:
    """All matches in a sentence, except those inside a longer match or about the other ventricle."""
    words: list[Finding | Attribute] = [*lexicon.findings, *lexicon.attributes]
    every = [
        Mention(
            match.start(), match.end(), what, _negated(sentence, match.start(), match.end(), what, lexicon)
        )
        for what in words
        for match in what.pattern.finditer(sentence)
    ]
    longest = [one for one in every if not any(_covers(other, one) for other in every)]
    return [one for one in longest if _of_chamber(one, sentence, lexicon)]


def _covers(other: Mention, one: Mention) -> bool:
    return other.length > one.length and other.start < one.end and one.start < other.end


def _of_chamber(mention: Mention, sentence: str, lexicon: Lexicon) -> bool:
    what = mention.what
    if isinstance(what, Attribute) or what.chamber is None:
        return True
    return _chamber(mention, sentence, lexicon) in {what.chamber, "both"}


def _chamber(mention: Mention, sentence: str, lexicon: Lexicon) -> str:
    """Ventricle that a mention describes: one named right after it, else the last before, else the next."""
    chambers = sorted(
        (match.start(), match.end(), name)
        for name, pattern in lexicon.chambers.items()
        for match in pattern.finditer(sentence)
    )
    before = [name for start, _, name in chambers if start < mention.end]
    after = [(start, name) for start, _, name in chambers if start >= mention.end]
    if after and after[0][0] - mention.end <= _CHAMBER_FOLLOWS:
        between = sentence[mention.end : after[0][0]]
        if not re.search(r"\b(?:and|with)\b|,", between) and not lexicon.verbs.search(between):
            return after[0][1]
    if before:
        return before[-1]
    return after[0][1] if after else "lv"


def _negated(sentence: str, start: int, end: int, what: Finding | Attribute, lexicon: Lexicon) -> bool:
    low, high = _statement(sentence, start, lexicon)
    before, behind = sentence[low:start], sentence[end:high]
    if _cue_reaches(before, lexicon.negating, lexicon):
        return True
    if lexicon.negated_behind.search(behind) and not lexicon.scope_ends.search(behind):
        return True
    if isinstance(what, Attribute):
        return _cue_reaches(before, lexicon.excepting, lexicon) or bool(_SPARED.match(behind))
    if what.values:
        return False
    return _cue_reaches(before, lexicon.normal, lexicon) or bool(lexicon.normal.search(behind))


def _cue_reaches(before: str, cue: re.Pattern[str], lexicon: Lexicon) -> bool:
    """Return whether a cue is in the text before a mention and no word after the cue ends its scope."""
    matches = list(cue.finditer(before))
    return bool(matches) and not lexicon.scope_ends.search(before[matches[-1].end() :])


def _statement(sentence: str, place: int, lexicon: Lexicon) -> tuple[int, int]:
    """Start and end of the statement around a place: a part of the sentence with a verb of its own."""
    breaks = [match.span() for match in _STATEMENT_BREAK.finditer(sentence)]
    stops = [start for start, _ in breaks[1:]] + [len(sentence)]
    cuts = [0]
    for (start, end), stop in zip(breaks, stops, strict=False):
        if lexicon.verbs.search(sentence[cuts[-1] : start]) and lexicon.verbs.search(sentence[end:stop]):
            cuts.append(end)
    cuts.append(len(sentence))
    return next((low, high) for low, high in pairwise(cuts) if place < high or high == len(sentence))


def _resolve(entities: list[Entity], fields: dict[str, Subtask]) -> Iterator[Entity]:
    """Resolve several values of one field.

    Abnormal values outrank normal ones; of a scale the worst counts, of single-choice the first.
    """
    for field, subtask in fields.items():
        values = list(dict.fromkeys(value for name, value in entities if name == field))
        texts = [option.text for option in subtask.options]
        values = [value for value in values if not _is_normal(subtask, value)] or values
        if subtask.answer_type == "ordinal" and values:
            values = [max(values, key=texts.index)]
        elif subtask.answer_type == "single":
            values = values[:1]
        yield from ((field, value) for value in values)


def _is_normal(subtask: Subtask, value: str) -> bool:
    return any(option.normal and option.text == value for option in subtask.options)
