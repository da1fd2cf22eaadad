"""Statements: the state that a clause gives a structure, with negation and certainty."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from cardiolens.protocol.tasks.lexicon import ANY, Lexicon, Scale, Trait
from cardiolens.report_text.assertion import certainty, is_negated
from cardiolens.report_text.clauses import Clause
from cardiolens.report_text.mentions import Mention
from cardiolens.report_text.states import State, measured, states_at

Names = tuple[str, ...]

_BEFORE = frozenset({"grade", "predicate", "place", "name", "state", "word", "neutral"})
_AFTER = frozenset({"grade", "predicate", "name", "place"})
_LINKS = frozenset(
    {"of", "the", "in", "into", "involving", "from", "beyond", "below", "within", "at", "a", "an"}
)


def subjects(clause: Clause, at: int, entry: Trait, context: Sequence[Names]) -> Names:
    """Return the structures of the finding at a position of a clause; empty if none of them is reported.

    `context` holds the structures named earlier, the latest first.
    """
    neighbours = _beside(clause.mentions, at)
    if neighbours is not None:
        return _accepted(neighbours, entry)
    for mention in _nearest(clause, at):
        if accepted := _accepted(mention, entry):
            return accepted
        if entry.strict:
            return ()
    return _inherited(entry, context)


def is_named(clause: Clause, at: int, entry: Trait, context: Sequence[Names]) -> bool:
    """Return whether words name the structure of a finding, in its clause or before."""
    return bool({*subjects(clause, at, replace(entry, default=None), context)} - {ANY})


def _inherited(entry: Trait, context: Sequence[Names]) -> Names:
    for names in context:
        if accepted := _accepted(names, entry):
            return accepted
        if entry.strict and "other" in names:
            return ()
    return (entry.default,) if entry.default else (ANY,) if ANY in entry.of else ()


def _accepted(names: Names, entry: Trait) -> Names:
    return tuple(name for name in names if entry.scale(name))


def _beside(mentions: Sequence[Mention], at: int) -> Names | None:
    before = _first(reversed(mentions[:at]), _BEFORE, frozenset())
    return before or _first(mentions[at + 1 :], _AFTER, _LINKS)


def _first(mentions: Iterable[Mention], kinds: frozenset[str], words: frozenset[str]) -> Names | None:
    """Return the first structure with only mentions of some kinds, or some words, before it."""
    for mention in mentions:
        if mention.kind == "structure":
            return mention.names
        if mention.kind not in kinds and mention.text not in words:
            return None
        if mention.kind == "word" and not words and mention.text in _LINKS:
            return None
    return None


def _nearest(clause: Clause, at: int) -> list[Names]:
    """Return the structures of a clause: those before a position, nearest first, then those after it."""
    structures = clause.of_kind("structure")
    order = sorted(structures, key=lambda place: (place > at, abs(place - at)))
    return [clause.mentions[place].names for place in order]


@dataclass(frozen=True, slots=True)
class Statement:
    """One state of one structure; `value` is None if it matches no option."""

    clause: int
    at: int
    trait: str
    structure: str
    scale: Scale
    said: State
    negated: bool
    certainty: str
    is_assumed: bool = False  # whether no word names the structure

    @property
    def value(self) -> str | None:
        return self.said.value(self.scale, negated=self.negated)

    @property
    def abnormal(self) -> bool:
        """Return whether the statement affirms an abnormality, which may have a place."""
        return not self.negated and self.said.state != "normal" and self.value != self.scale.normal


@dataclass(frozen=True, slots=True)
class Reading:
    """The clauses of a sentence, their statements, and the structures in the heading above it."""

    clauses: Sequence[Clause]
    made: Sequence[Statement]
    topics: Sequence[Names]
    lexicon: Lexicon

    @staticmethod
    def of(clauses: Sequence[Clause], topics: Sequence[Names], lexicon: Lexicon) -> "Reading":
        """Read a sentence."""
        return Reading(clauses, list(_statements(clauses, topics, lexicon)), topics, lexicon)

    def of_clause(self, number: int) -> list[Statement]:
        """Return the statements of one clause."""
        return [statement for statement in self.made if statement.clause == number]


def _statements(clauses: Sequence[Clause], topics: Sequence[Names], lexicon: Lexicon) -> Iterator[Statement]:
    topic_names = list(topics)
    statements: list[Statement] = []
    for number, clause in enumerate(clauses):
        context = [*topic_names, *_ahead(clauses, number)]
        of_clause = list(_of_clause(clauses, number, context, lexicon))
        if not clause.of_kind("name", "state"):
            of_clause = [
                *_implied(clauses, number, context, lexicon),
                *_repeated(clauses, number, statements, lexicon),
            ]
        statements += of_clause
        yield from of_clause
        topic_names = [*_structures(clause), *topic_names]


def wholes(reading: Reading) -> Iterator[tuple[int, str, str, str]]:
    """Yield (clause, field, value, certainty) for every structure that is called normal as a whole."""
    clauses = reading.clauses
    for number, clause in enumerate(clauses):
        predicates = clause.of_kind("predicate")
        if not predicates or clause.of_kind("name", "state"):
            continue
        at = predicates[0]
        negated = is_negated(clauses, number, at)
        if clause.mentions[at].name != ("abnormal" if negated else "normal"):
            continue
        for structure in [name for names in _structures(clause) or reading.topics[:1] for name in names]:
            for field, value in reading.lexicon.wholes.get(structure, {}).items():
                yield number, field, value, certainty(clauses, number, at, negated=negated)


def _of_clause(
    clauses: Sequence[Clause], number: int, context: Sequence[Names], lexicon: Lexicon
) -> Iterator[Statement]:
    clause = clauses[number]
    for at in clause.of_kind("name", "state"):
        name = clause.mentions[at].trait
        entry = lexicon.traits[name]
        states = [*states_at(clause, at)[:1], *measured(clause, at, entry.bare_unit)]
        for structure in subjects(clause, at, entry, context) if states else ():
            scale = entry.scale(structure)
            assert scale is not None
            for state in states:
                if state.measure and state.value(scale, negated=False) is None:
                    continue
                negated = is_negated(clauses, number, state.at) and not state.measure
                meaning = certainty(clauses, number, state.at, negated=negated)
                graded = replace(state, grade=_own_grade(clause, structure) or state.grade)
                is_assumed = not is_named(clause, at, entry, context)
                yield Statement(number, at, name, structure, scale, graded, negated, meaning, is_assumed)


def _own_grade(clause: Clause, structure: str) -> str | None:
    grades = [dict(clause.mentions[at].grades) for at in clause.of_kind("structure")]
    return next((grade_of[structure] for grade_of in grades if structure in grade_of), None)


def _implied(
    clauses: Sequence[Clause], number: int, context: Sequence[Names], lexicon: Lexicon
) -> Iterator[Statement]:
    """Yield statements of measures after a place: `septum 18 mm`."""
    clause = clauses[number]
    blocked = clause.of_kind("neutral")
    for at in clause.of_kind("measure"):
        place = max((position for position in clause.of_kind("place") if position < at), default=None)
        measure = clause.mentions[at].measure
        for name, entry in lexicon.traits.items():
            if place is None or blocked or measure is None or measure.unit != entry.implied_by:
                continue
            for structure in subjects(clause, place, entry, context):
                scale = entry.scale(structure)
                assert scale is not None
                meaning = certainty(clauses, number, at, negated=False)
                yield Statement(
                    number, place, name, structure, scale, State("", ANY, at, measure), False, meaning
                )


def _repeated(
    clauses: Sequence[Clause], number: int, statements: Sequence[Statement], lexicon: Lexicon
) -> Iterator[Statement]:
    """Repeat the last statement: negated for another structure (`the RV is not`), or as an exception."""
    clause = clauses[number]
    if not statements:
        return
    last = statements[-1]
    if clause.joint == "exceptions" and last.negated:
        yield replace(last, clause=number, at=0, negated=False)
    elif clause.mentions and clause.mentions[-1].text in ("not", "is not", "are not"):
        structures = [name for names in _structures(clause) for name in names]
        for name in structures:
            if scale := lexicon.traits[last.trait].scale(name):
                yield replace(last, clause=number, at=0, structure=name, scale=scale, negated=True)


def _structures(clause: Clause) -> list[Names]:
    """Return the structures that a clause names, the latest first."""
    return [clause.mentions[at].names for at in reversed(clause.of_kind("structure"))]


def _ahead(clauses: Sequence[Clause], number: int) -> list[Names]:
    """Return structures of the next clause, which an adjective may refer to: `dilated and akinetic RV`."""
    if clauses[number].of_kind("verb", "name"):
        return []  # "function is reduced, and the RV is dilated"
    following = clauses[number + 1 : number + 2]
    return [names for clause in following if clause.joint == "and" for names in _structures(clause)]
