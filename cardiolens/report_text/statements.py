"""Statements: the state that a clause gives a structure, with negation and certainty."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from cardiolens.protocol.tasks.lexicon import ANY, Lexicon, Scale
from cardiolens.report_text.assertion import certainty, is_negated
from cardiolens.report_text.clauses import Clause
from cardiolens.report_text.states import State, measured, states_at
from cardiolens.report_text.subjects import Names, is_named, subjects


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
