"""States of traits: from the trait's own word, or from a predicate or number beside it."""

from dataclasses import dataclass, replace

from cardiolens.protocol.tasks.lexicon import ANY, Scale
from cardiolens.report_text.clauses import Clause
from cardiolens.report_text.mentions import Mention
from cardiolens.report_text.tokens import Token

_EARLIER = frozenset({"vs", "versus", "than"})
_EQUAL = frozenset({"=", "of", "approximately", "about", "around", "~", "≈", "at", "estimated", "calculated"})
_STRONG = frozenset({"moderate", "severe"})


@dataclass(frozen=True, slots=True)
class State:
    """A state with its grade and the position of its word; or a measure."""

    state: str
    grade: str
    at: int
    measure: Token | None = None

    def value(self, scale: Scale, *, negated: bool) -> str | None:
        """Return the option that is asserted on a scale, or None."""
        if self.measure:
            return None if negated else ranged(scale, self.measure)
        if not negated:
            return scale.value(self.state, self.grade)
        # "not normal" states no option, nor does "no severe dilatation"
        return None if self.state == "normal" or self.grade in _STRONG else scale.normal


def states_at(clause: Clause, at: int) -> list[State]:
    """Return the states of the name or state at a position of a clause, the most direct first."""
    mention = clause.mentions[at]
    if mention.kind == "state":
        called_normal = mention.name == "present" and _normal(clause, at)
        state = "normal" if called_normal else mention.name
        return [State(state, grade(clause, at), at)]
    predicates = sorted(clause.of_kind("predicate"), key=lambda place: _distance(clause, at, place))
    states = [State(clause.mentions[place].name, grade(clause, place), place) for place in predicates]
    if not predicates and clause.of_kind("negated_behind"):
        states = [State(ANY, ANY, at)]
    return states


def measured(clause: Clause, at: int, bare_unit: str | None) -> list[State]:
    """Return the measures of a clause that belong to the name or state at a position."""
    owned = [place for place in clause.of_kind("measure") if _owner(clause, place) == at]
    if bare_unit and not owned:
        owned = [place for place in clause.of_kind("number") if _is_right_behind(clause, at, place)]
    return [
        State("", ANY, place, _latest(clause, place, bare_unit))
        for place in owned
        if not _past(clause, place)
    ]


def _owner(clause: Clause, place: int) -> int | None:
    return max(
        (position for position in clause.of_kind("name", "state", "neutral") if position < place),
        default=None,
    )


def _is_right_behind(clause: Clause, at: int, place: int) -> bool:
    between = clause.mentions[at + 1 : place]
    return at < place and all(
        mention.kind in ("verb", "colon") or mention.text in _EQUAL for mention in between
    )


def _latest(clause: Clause, place: int, bare_unit: str | None) -> Token:
    """Return a measure with its unit; for `from 55 to 42 %` only the second number."""
    measure = clause.mentions[place].measure
    assert measure is not None
    low = measure.high if place and clause.mentions[place - 1].text == "from" else measure.low
    return replace(measure, low=low, unit=measure.unit or bare_unit or "")


def grade(clause: Clause, at: int) -> str:
    """Return the grade nearest to a position, without another state or predicate in between."""
    places = [
        place
        for place in clause.of_kind("grade")
        if not _parted(clause, at, place) and not _is_of_next(clause, at, place)
    ]
    nearest = min(places, key=lambda place: (abs(place - at), place > at), default=None)
    return ANY if nearest is None else clause.mentions[nearest].name


def _is_of_next(clause: Clause, at: int, place: int) -> bool:
    """Return whether a grade is of the word behind it: `the dilated LV has severely reduced function`."""
    following = clause.mentions[place + 1 : place + 2]
    return place + 1 != at and any(mention.kind in ("state", "predicate", "neutral") for mention in following)


def ranged(scale: Scale, measure: Token) -> str | None:
    """Return the option with a range that contains a measure; None if it spans two."""
    limits = scale.ranges.get(measure.unit, ())
    low, high = (
        next((value for limit, value in limits if limit is None or number < limit), None)
        for number in (measure.low, measure.high)
    )
    return low if low == high else None


def _normal(clause: Clause, at: int) -> bool:
    mentions = clause.mentions
    return any(mentions[place].name == "normal" for place in clause.of_kind("predicate"))


def _distance(clause: Clause, at: int, place: int) -> tuple[bool, int]:
    """Sort key of a predicate: those without a verb in between first, then by distance in mentions."""
    return _parted(clause, at, place, kinds=("verb",)), abs(place - at)


def _parted(
    clause: Clause,
    at: int,
    place: int,
    kinds: tuple[str, ...] = ("state", "predicate", "comma", "neutral", "with"),
) -> bool:
    low, high = sorted((at, place))
    between: tuple[Mention, ...] = clause.mentions[low + 1 : high]
    return any(mention.kind in kinds and mention.name != "present" for mention in between)


def _past(clause: Clause, place: int) -> bool:
    """Return whether a number is an earlier one: `previously 38 %`, or `from 30 %` beside another number."""
    before = clause.mentions[max(0, place - 2) : place]
    has_several = len(clause.of_kind("measure")) > 1
    if any(mention.kind == "historical" or mention.text.startswith("compared") for mention in before):
        return True
    return any(mention.text in _EARLIER or (has_several and mention.text == "from") for mention in before)
