"""Unread sentences: what of a report was not understood, and the questions whose answers that leaves open.

No list of words that speak against an answer is ever whole. So an answer stands only if nothing that speaks
of its subject is left unread.
"""

import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from cardiolens.curation.questions.statement import ReportStatement
from cardiolens.curation.questions.strict_patterns import has, words
from cardiolens.protocol.tasks.catalogue import Catalogue, Subtask
from cardiolens.protocol.tasks.lexicon import ANY, Trait
from cardiolens.report_text.mentions import Mention
from cardiolens.report_text.report_layout import left_out, plain
from cardiolens.report_text.sections import Sentence, sentence_at
from cardiolens.report_text.understanding import unknown_words, vocabulary

_WALLS = frozenset({"wall", "walls", "free wall"})  # name a place beside a finding of another trait
_DOUBTS = frozenset({"negated", "negated_behind", "uncertain", "uncertain_behind", "spared", "sparing"})


@dataclass(frozen=True, slots=True)
class _Subject:
    """A trait whose state a question asks about, and the structures that it is of."""

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


class _UnreadSentence:
    """What a sentence that was not understood names."""

    def __init__(self, sentence: Sentence, text: str, mentions: Sequence[Mention]) -> None:
        self.phrase = text[sentence.start : sentence.end]
        self.structures = frozenset(
            name for mention in mentions if mention.kind == "structure" for name in mention.names
        )
        found = [mention for mention in mentions if mention.kind in ("name", "state")]
        traits = {mention.trait for mention in found if mention.text not in _WALLS}
        self.traits = traits or {mention.trait for mention in found}
        self.stems = {gate for gate, pattern in words()["unread"].items() if has(pattern, self.phrase)}
        self.kinds = {mention.kind for mention in mentions}
        self.places = {name for mention in mentions if mention.kind == "place" for name in mention.names}
        self.is_plan = any(mention.kind == "hypothetical" for mention in mentions[:2])
        self.says_more = any(
            mention.kind != "structure" and any(map(str.isalnum, mention.text)) for mention in mentions
        )

    @property
    def is_of_other(self) -> bool:
        """Return whether it is of what no question asks about: a plan, or how images were made."""
        is_technique = "technique" in self.kinds and not self.places
        return self.is_plan or is_technique or "not_made" in self.stems

    def continues(self, *, is_on_detail: bool) -> bool:
        """Return whether it may go on with the sentence before it: with its places, or with its number."""
        if self.structures:
            return False
        is_bare = not self.traits and not self.stems
        if is_on_detail:
            return is_bare or bool(self.places) or has(words()["pronoun"], self.phrase)
        return is_bare and "measure" in self.kinds


class UnreadSentences:
    """The sentences of a report that were not understood, behind its title and its history.

    So are lines of tables and forms from which nothing could be read.
    """

    def __init__(
        self,
        text: str,
        pieces: Sequence[Sentence],
        statements: Sequence[ReportStatement],
        catalogue: Catalogue,
    ) -> None:
        self._pieces = pieces
        self._text = plain(text)
        self._statements = [statement for statement in statements if statement.certainty == "certain"]
        self._subjects = _subjects(catalogue)
        read = [statement.start for statement in self._statements if not statement.doubt]
        first = min(read, default=len(text))
        candidates = [(sentence, self._text) for sentence in unknown_words(self._text, catalogue)]
        candidates += [(_line(start, end, pieces), text) for start, end in left_out(text)]
        self._unread = {
            sentence: _UnreadSentence(
                sentence, written, vocabulary(catalogue).mentions(written, sentence.start, sentence.end)
            )
            for sentence, written in candidates
            if sentence.section != "silent" and (sentence.end > first or sentence.concludes)
        }

    def leave_open(self, subtask: Subtask, *, is_affirmed: bool) -> bool:
        """Return whether one of them speaks of what a question asks about, and was not read for it.

        A finding that is there stays there beside a sentence that neither denies nor doubts it. Its places
        and patterns are left open by less: by a place, or by words that point back at it.
        """
        subjects = self._subjects.get(subtask.id, ())
        gate = subtask.parent or subtask.id
        family = {gate, *words()["details"].get(gate, ())} if subtask.parent else {gate}
        read = {
            sentence_at(self._pieces, statement.start)
            for statement in self._statements
            if statement.subtask in family and not (subtask.parent and statement.doubt)
        }
        for place, unread in self._unread.items() if subjects else ():
            if place in read or unread.is_of_other:
                continue
            if subtask.parent and place.concludes and not self._adds(unread, subjects, family):
                continue
            is_harmless = is_affirmed and _DOUBTS.isdisjoint(unread.kinds)
            if _names_subject(unread, subjects, gate) and not is_harmless:
                return True
            if self._goes_on(place, read) and unread.continues(is_on_detail=bool(subtask.parent)):
                return True
            if subtask.parent and _is_on_detail(unread, subjects, gate):
                return True
        return False

    def _adds(self, unread: _UnreadSentence, subjects: Sequence[_Subject], family: Collection[str]) -> bool:
        """Return whether a conclusion names places or patterns that no sentence before it has."""
        options = [names for subject in subjects for names in subject.trait.places.values()]
        named = {names[place] for names in options for place in unread.places if place in names}
        told = {statement.value for statement in self._statements if statement.subtask in family}
        return has(words()["unread_more"], unread.phrase) or not named <= told

    def _goes_on(self, sentence: Sentence, read: Collection[Sentence]) -> bool:
        """Return whether a sentence stands behind one that was read, in its line."""
        before = max(
            (piece for piece in read if piece.end <= sentence.start),
            key=lambda piece: piece.end,
            default=None,
        )
        return before is not None and not self._text[before.end : sentence.start].strip(". ;!")


def _is_on_detail(unread: _UnreadSentence, subjects: Sequence[_Subject], gate: str) -> bool:
    """Return whether a sentence names places, or points back, and is of nothing else that we know."""
    names = {subject.name for subject in subjects}
    is_of_structure = not unread.structures or any(subject.accepts(unread.structures) for subject in subjects)
    if not unread.traits <= names or unread.stems - {gate} or not is_of_structure:
        return False
    return bool(unread.places) or has(words()["points_back"], unread.phrase)


def _line(start: int, end: int, pieces: Sequence[Sentence]) -> Sentence:
    """A line as a sentence of the section that it stands in."""
    before = next((piece for piece in reversed(pieces) if piece.start <= start), None)
    section, concludes = (before.section, before.concludes) if before else ("any", False)
    return Sentence(start, end, section, opens=False, asks=False, topic=None, concludes=concludes)


def _names_subject(unread: _UnreadSentence, subjects: Sequence[_Subject], gate: str) -> bool:
    """Return whether a sentence names what a question asks about, or its structure and nothing of it."""
    return any(
        subject.accepts(unread.structures) and (subject.name in unread.traits or gate in unread.stems)
        for subject in subjects
    ) or (
        not unread.traits
        and not unread.stems
        and unread.says_more
        and unread.kinds.isdisjoint({"disease", "neutral"})
        and any(subject.structures & unread.structures for subject in subjects if subject.name != "jet")
    )
