"""Places of findings: the finding that each belongs to, and the options that a finding's places tell."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cardiolens.protocol.tasks.lexicon import Lexicon, Trait
from cardiolens.report_text.assertion import reaches
from cardiolens.report_text.clauses import Clause
from cardiolens.report_text.statements import Reading, Statement

_NEAR = 4  # mentions between a percentage and the place that it measures
_ADJECTIVES = ("ic", "ed", "al")


@dataclass(frozen=True, slots=True)
class Placed:
    """A place of a statement, by its name in the lexicon, and the clause that tells it."""

    statement: Statement
    place: str
    clause: int


def placed(reading: Reading, last: Statement | None) -> list[Placed]:
    """The places of a sentence with their statements; `last` is the last one of earlier sentences."""
    found = []
    for number, clause in enumerate(reading.clauses):
        for at in clause.of_kind("place"):
            bearer = _bearer(reading, number, at, last)
            if bearer and bearer.abnormal and not _denied(reading.clauses, number, at, bearer):
                entry = reading.lexicon.traits[bearer.trait]
                found += [Placed(bearer, name, number) for name in _renamed(clause, at, entry)]
    return found + list(_shared(reading, found))


def values(found: Sequence[Placed], lexicon: Lexicon) -> Iterator[tuple[str, str, Placed]]:
    """(field, option, place) of every place, and of what several of them together amount to."""
    for one in found:
        entry = lexicon.traits[one.statement.trait]
        for field, options in entry.places.items():
            if one.place in options:
                yield field, options[one.place], one
        names = {other.place for other in found if other.statement.trait == one.statement.trait}
        for field, needed, value in entry.combined:
            if one.place in needed and needed <= names:
                yield field, value, one


def _bearer(reading: Reading, number: int, at: int, last: Statement | None) -> Statement | None:
    """The nearest statement of the clause, else of the sentence, else the last one before."""
    if own := reading.of_clause(number):
        fit = [one for one in own if bears(one, reading.lexicon)]
        return min(fit, key=lambda one: (abs(one.at - at), not one.abnormal), default=None)
    if reading.clauses[number].of_kind("foreign"):
        return None
    if fit := [one for one in reading.made if bears(one, reading.lexicon)]:
        return min(fit, key=lambda one: (abs(one.clause - number), one.clause > number, -one.at))
    elsewhere = reading.made or any(clause.of_kind("foreign") for clause in reading.clauses)
    return None if elsewhere else last


def bears(one: Statement, lexicon: Lexicon) -> bool:
    """Return whether the places of a statement are reported."""
    entry = lexicon.traits[one.trait]
    return bool(entry.places) and (not entry.bearers or one.structure in entry.bearers)


def _denied(clauses: Sequence[Clause], number: int, at: int, bearer: Statement) -> bool:
    """Return whether a place is named as one that is not affected."""
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
    """The places that a mention names; a percentage beside one may make it another."""
    mention = clause.mentions[at]
    limits = entry.percent.get(mention.name, ())
    near = clause.mentions[max(0, at - _NEAR) : at + _NEAR]
    shares = [one.measure for one in near if one.measure and one.measure.unit == "%"]
    if not limits or not shares:
        return mention.names
    share = (shares[0].low + shares[0].high) / 2 + any(one.text == ">" for one in near)
    name = next((place for limit, place in limits if limit is None or share < limit), None)
    return (name,) if name else ()


def _shared(reading: Reading, found: Sequence[Placed]) -> Iterator[Placed]:
    """Places of a neighbour that an adjective alone in its clause shares: `thinned and akinetic wall`."""
    for one in reading.made:
        clause = reading.clauses[one.clause]
        if bears(one, reading.lexicon) and one.abnormal and _bare(clause, one.at):
            shared = [
                _of_neighbour(reading, one.clause, at, found) for at in (one.clause + 1, one.clause - 1)
            ]
            yield from (Placed(one, place, one.clause) for place in next(filter(None, shared), ()))


def _of_neighbour(reading: Reading, number: int, neighbour: int, found: Sequence[Placed]) -> list[str]:
    if not 0 <= neighbour < len(reading.clauses):
        return []
    joint = reading.clauses[max(neighbour, number)].joint
    return [one.place for one in found if one.clause == neighbour and joint in ("and", "comma")]


def _bare(clause: Clause, at: int) -> bool:
    only = {"grade", "state", "word", "verb", "measure", "open", "close"}
    return clause.mentions[at].text.endswith(_ADJECTIVES) and {one.kind for one in clause.mentions} <= only
