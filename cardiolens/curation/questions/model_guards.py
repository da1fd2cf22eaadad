"""Guards of a model's findings: each is believed only where the report itself bears it out."""

import functools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cardiolens.curation.questions.diagnosis import names_diagnosis
from cardiolens.curation.questions.draft_reasons import Reason
from cardiolens.curation.questions.glossary import headings_of
from cardiolens.curation.questions.rule_extraction import SAYING, extract
from cardiolens.curation.questions.statement import ReportStatement
from cardiolens.curation.questions.strict_patterns import words
from cardiolens.protocol.tasks.catalogue import Catalogue, Subtask
from cardiolens.protocol.tasks.lexicon import ANY, Trait
from cardiolens.report_text.mentions import Mention, reader
from cardiolens.report_text.report_layout import plain
from cardiolens.report_text.sections import Sentence, pieces_of, sentence_at

_DENYING = frozenset({"negated", "negated_behind", "prefix"})
_DOUBTING = frozenset({"uncertain", "uncertain_behind", "hypothetical"})
_VALUES = frozenset({"state", "predicate", "grade", "measure", "place", "spared", *_DENYING})


@dataclass(frozen=True)
class Guards:
    """A report as its rules read it, against which the entries of a reply are checked."""

    text: str
    read: str  # the text as its layout is read, blank where it says nothing
    catalogue: Catalogue
    pieces: Sequence[Sentence]
    rules: Sequence[ReportStatement]

    @staticmethod
    def of(text: str, sex: str | None, catalogue: Catalogue) -> "Guards":
        """Read a report by rules, in doubt or not."""
        read = plain(text)
        pieces = pieces_of(read, headings_of(catalogue))
        return Guards(text, read, catalogue, pieces, extract(text, sex, catalogue))

    def check(self, quote: str, values: Sequence[str], subtask: Subtask) -> list[ReportStatement] | Reason:
        """Return the statements of an entry, or the reason why it is not believed."""
        places = list(_places(quote, self.text))
        if not places:
            return Reason.NOT_QUOTED
        spoken = [
            (start, end)
            for start, end in places
            if sentence_at(self.pieces, start).section != "silent" and self.read[start:end].strip()
        ]
        if not spoken:
            return Reason.SILENT_SECTION
        start, end = spoken[0]
        sentence = sentence_at(self.pieces, start)
        if reason := self._fault(start, end, sentence, values, subtask):
            return reason
        polarity = "negated" if self._denies(start, end, subtask) else "affirmed"
        return [
            ReportStatement(
                subtask.id,
                value,
                start,
                end,
                self.text[start:end],
                sentence.section,
                polarity,
                "certain",
                "model",
            )
            for value in values
        ]

    def _fault(
        self, start: int, end: int, sentence: Sentence, values: Sequence[str], subtask: Subtask
    ) -> Reason | None:
        """Return why a quote does not bear its values out; None if it does."""
        if not self._names(start, end, sentence, values, subtask):
            return Reason.NAMES_NO_FINDING
        kinds = {mention.kind for mention in self._mentions(sentence.start, max(end, sentence.end), subtask)}
        if sentence.asks or kinds & _DOUBTING:
            return Reason.UNCERTAIN
        if "historical" in kinds and "lasting" not in kinds:
            return Reason.NOT_TODAY
        normal = {option.text for option in subtask.options if option.normal}
        if self._denies(start, end, subtask) and not {*values} <= normal and subtask.parent is None:
            read = {
                statement.value
                for statement in self._beside(sentence, subtask)
                if statement.certainty == "certain"
            }
            if not {*values} <= read:
                return Reason.CONTRADICTION
        return self._against_rules(sentence, values, subtask)

    def _against_rules(self, sentence: Sentence, values: Sequence[str], subtask: Subtask) -> Reason | None:
        """Return why what the rules read in the same sentence speaks against values; None if it does not."""
        beside = self._beside(sentence, subtask)
        certain = [statement for statement in beside if statement.certainty == "certain"]
        if beside and not certain:
            return Reason.NOT_TODAY if beside[0].certainty == "historical" else Reason.UNCERTAIN
        numbers = [{statement.value, *statement.near} - {None} for statement in certain if statement.measured]
        if any(allowed and not allowed & {*values} for allowed in numbers):
            return Reason.NUMBER_AGAINST_WORDS
        read = {
            statement.value for statement in certain if not statement.measured and statement.value is not None
        }
        return Reason.CONTRADICTION if read and not read & {*values} else None

    def _beside(self, sentence: Sentence, subtask: Subtask) -> list[ReportStatement]:
        return [
            statement
            for statement in self.rules
            if statement.subtask == subtask.id and sentence_at(self.pieces, statement.start) == sentence
        ]

    def _names(
        self, start: int, end: int, sentence: Sentence, values: Sequence[str], subtask: Subtask
    ) -> bool:
        """Return whether a quote names the finding that is asked about, and says something of it.

        The structure may stand in the heading above, and the finding of a place in the quote's sentence.
        """
        quote = self.text[start:end]
        if subtask.sequence not in self.catalogue.lexicons:
            return all(names_diagnosis(subtask, value, quote) for value in values)
        said = self._mentions(start, end, subtask)
        if subtask.parent is not None:
            around = self._mentions(sentence.start, max(end, sentence.end), subtask) + self._above(
                sentence, subtask
            )
            return _names_trait(around, subtask, self.catalogue) and _names_places(
                said, values, subtask, self.catalogue
            )
        above = self._above(sentence, subtask)
        saying = (
            SAYING if subtask.id in words()["named"] else _VALUES
        )  # `LGE` is a name, and `dilated` a value
        is_said = any(mention.kind in saying for mention in said)
        has_own = _names_trait(said, subtask, self.catalogue) or _names_trait(
            [*above, *said], subtask, self.catalogue
        )
        return is_said and has_own and bool(_traits(said) or _structures(said))

    def _above(self, sentence: Sentence, subtask: Subtask) -> list[Mention]:
        heading = sentence.part or sentence.topic
        return self._mentions(heading.start, heading.end, subtask) if heading else []

    def _mentions(self, start: int, end: int, subtask: Subtask) -> list[Mention]:
        lexicon = self.catalogue.lexicons.get(subtask.sequence) or next(
            iter(self.catalogue.lexicons.values())
        )
        return reader(lexicon).mentions(self.text, start, end)

    def _denies(self, start: int, end: int, subtask: Subtask) -> bool:
        return any(mention.kind in _DENYING for mention in self._mentions(start, end, subtask))


def _places(quote: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield where a quote stands in a text: whole words, runs of spaces alike."""
    words = quote.split()
    if not words or not any(map(str.isalnum, quote)):
        return
    for match in re.finditer(r"\s+".join(map(re.escape, words)), text):
        start, end = match.span()
        cut_before = start > 0 and text[start - 1].isalnum() and text[start].isalnum()
        cut_behind = end < len(text) and text[end - 1].isalnum() and text[end].isalnum()
        if not cut_before and not cut_behind:
            yield start, end


@dataclass(frozen=True, slots=True)
class _Subject:
    """A trait that a question asks about, and the structures that have it."""

    name: str
    trait: Trait
    structures: frozenset[str]

    def accepts(self, structures: Collection[str]) -> bool:
        """Return whether the trait of one of these structures is asked about, or of none that is named."""
        if not structures:
            return self.trait.default is None or self.trait.default in self.structures
        return any(
            structure in self.structures or (ANY in self.structures and self.trait.scale(structure))
            for structure in structures
        )


@functools.lru_cache(maxsize=8)
def _subjects(catalogue: Catalogue) -> Mapping[str, Sequence[_Subject]]:
    """Return what each question asks about; one on places or patterns asks about its finding."""
    subjects: dict[str, list[_Subject]] = {}
    for subtask in catalogue.subtasks.values():
        gate = catalogue[subtask.parent] if subtask.parent else subtask
        lexicon = catalogue.lexicons.get(gate.sequence)
        for name, trait in lexicon.traits.items() if lexicon else ():
            of = frozenset(
                structure for structure, scale in trait.of.items() if scale and scale.field == gate.field
            )
            if of:
                subjects.setdefault(subtask.id, []).append(_Subject(name, trait, of))
    return subjects


def _traits(mentions: Sequence[Mention]) -> set[str]:
    return {mention.trait for mention in mentions if mention.kind in ("name", "state")}


def _structures(mentions: Sequence[Mention]) -> set[str]:
    return {name for mention in mentions if mention.kind == "structure" for name in mention.names}


def _names_trait(mentions: Sequence[Mention], subtask: Subtask, catalogue: Catalogue) -> bool:
    """Return whether mentions name a trait that is asked about, of a structure of its own or of none.

    A structure that is called normal as a whole has all its traits.
    """
    traits, structures = _traits(mentions), _structures(mentions)
    wholes = catalogue.lexicons[subtask.sequence].wholes
    if not traits and any(subtask.field in wholes.get(name, {}) for name in structures):
        return True
    subjects = _subjects(catalogue).get(subtask.id, ())
    return any(subject.name in traits and subject.accepts(structures) for subject in subjects)


def _names_places(
    mentions: Sequence[Mention], values: Sequence[str], subtask: Subtask, catalogue: Catalogue
) -> bool:
    """Return whether mentions name each of the places, layers or patterns that are given as values."""
    named = {name for mention in mentions if mention.kind == "place" for name in mention.names}
    stated: set[Any] = set()
    for subject in _subjects(catalogue).get(subtask.id, ()):
        options = subject.trait.places.get(subtask.field, {})
        stated |= {options[name] for name in named if name in options}
        stated |= {
            value
            for field, needed, value in subject.trait.combined
            if field == subtask.field and needed <= named
        }
    return {*values} <= stated
