"""Places of findings: which finding each place belongs to, and the options that it amounts to."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cardiolens.protocol.tasks.lexicon import Lexicon, Trait
from cardiolens.report_text.assertion import reaches
from cardiolens.report_text.clauses import Clause
from cardiolens.report_text.statements import Reading, Statement

_NEAR = 4  # mentions between a percentage and the place that it measures
_ADJECTIVES = ("ic", "ed", "al")


@dataclass(frozen=True, slots=True)
class PlacedStatement:
    """A place of a statement, by its name in the lexicon, and its clause."""

    statement: Statement
    place: str
    clause: int


def placed_statements(reading: Reading, last: Statement | None) -> list[PlacedStatement]:
    """Assign the places of a sentence to statements; `last` is the last one of earlier sentences."""
    placements = []
    for number, clause in enumerate(reading.clauses):
        for at in clause.of_kind("place"):
            bearer = _bearer(reading, number, at, last)
            if bearer and bearer.abnormal and not _denied(reading.clauses, number, at, bearer):
                entry = reading.lexicon.traits[bearer.trait]
                placements += [PlacedStatement(bearer, name, number) for name in _renamed(clause, at, entry)]
    return placements + list(_shared(reading, placements))


def values(
    placements: Sequence[PlacedStatement], lexicon: Lexicon
) -> Iterator[tuple[str, str, PlacedStatement]]:
    """Yield (field, option, placement) of every place, and of combinations of places."""
    for placement in placements:
        entry = lexicon.traits[placement.statement.trait]
        for field, options in entry.places.items():
            if placement.place in options:
                yield field, options[placement.place], placement
        names = {rival.place for rival in placements if rival.statement.trait == placement.statement.trait}
        for field, needed, value in entry.combined:
            if placement.place in needed and needed <= names:
                yield field, value, placement


def _bearer(reading: Reading, number: int, at: int, last: Statement | None) -> Statement | None:
    """Return the statement of a place: the nearest of its clause, else of its sentence, else `last`."""
    if statements := reading.of_clause(number):
        fit = [statement for statement in statements if bears(statement, reading.lexicon)]
        return min(fit, key=lambda statement: (abs(statement.at - at), not statement.abnormal), default=None)
    clause = reading.clauses[number]
    if clause.of_kind("foreign") or any(
        clause.mentions[place].name == "normal" for place in clause.of_kind("predicate")
    ):
        return None
    if fit := [statement for statement in reading.made if bears(statement, reading.lexicon)]:
        return min(
            fit,
            key=lambda statement: (abs(statement.clause - number), statement.clause > number, -statement.at),
        )
    elsewhere = reading.made or any(clause.of_kind("foreign") for clause in reading.clauses)
    return None if elsewhere else last


def bears(statement: Statement, lexicon: Lexicon) -> bool:
    """Return whether the places of a statement are reported."""
    entry = lexicon.traits[statement.trait]
    return bool(entry.places) and (not entry.bearers or statement.structure in entry.bearers)


def _denied(clauses: Sequence[Clause], number: int, at: int, bearer: Statement) -> bool:
    """Return whether a place is named as unaffected."""
    clause = clauses[number]
    if clause.joint == "exceptions" and (bearer.clause != number or _opens(clauses, number, at)):
        return True
    spared = any(place > at for place in clause.of_kind("spared"))
    # "spares the apex and involves the septum": a verb starts anew
    last_verb = max((place for place in clause.of_kind("verb") if place < at), default=-1)
    sparing = any(last_verb < place < at for place in clause.of_kind("sparing"))
    return spared or sparing or reaches(clauses, number, at, "negated")


def _opens(clauses: Sequence[Clause], number: int, at: int) -> bool:
    """Return whether a place belongs to an exception that opens its sentence: `except for the apex, ...`."""
    return number == 0 and not any(place < at for place in clauses[0].of_kind("comma"))


def _renamed(clause: Clause, at: int, entry: Trait) -> tuple[str, ...]:
    """Return the places that a mention names; a percentage nearby may change the place."""
    mention = clause.mentions[at]
    limits = entry.percent.get(mention.name, ())
    near = clause.mentions[max(0, at - _NEAR) : at + _NEAR]
    shares = [one.measure for one in near if one.measure and one.measure.unit == "%"]
    if not limits or not shares:
        return mention.names
    share = (shares[0].low + shares[0].high) / 2 + any(one.text == ">" for one in near)
    name = next((place for limit, place in limits if limit is None or share < limit), None)
    return (name,) if name else ()


def _shared(reading: Reading, placements: Sequence[PlacedStatement]) -> Iterator[PlacedStatement]:
    """Yield places that a bare adjective shares with a neighbouring clause: `thinned and akinetic wall`."""
    for statement in reading.made:
        clause = reading.clauses[statement.clause]
        if bears(statement, reading.lexicon) and statement.abnormal and _bare(clause, statement.at):
            shared = [
                _of_neighbour(reading, statement.clause, at, placements)
                for at in (statement.clause + 1, statement.clause - 1)
            ]
            yield from (
                PlacedStatement(statement, place, statement.clause)
                for place in next(filter(None, shared), ())
            )


def _of_neighbour(
    reading: Reading, number: int, neighbour: int, placements: Sequence[PlacedStatement]
) -> list[str]:
    if not 0 <= neighbour < len(reading.clauses):
        return []
    joint = reading.clauses[max(neighbour, number)].joint
    return [
        placement.place
        for placement in placements
        if placement.clause == neighbour and joint in ("and", "comma")
    ]


def _bare(clause: Clause, at: int) -> bool:
    only = {"grade", "state", "word", "verb", "measure", "open", "close"}
    return (
        clause.mentions[at].text.endswith(_ADJECTIVES)
        and {mention.kind for mention in clause.mentions} <= only
    )
