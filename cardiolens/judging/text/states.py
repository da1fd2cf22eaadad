"""What is said of a trait: the state that its word has, or that a predicate or a number beside it gives."""

from dataclasses import dataclass

from cardiolens.judging.text.clauses import Clause
from cardiolens.judging.text.mentions import Mention
from cardiolens.judging.text.tokens import Token
from cardiolens.tasks.lexicon import ANY, Scale

_IGNORED_BEFORE = frozenset({"from", "previously", "was", "prior", "vs", "versus"})
_STRONG = frozenset({"moderate", "severe"})


@dataclass(frozen=True, slots=True)
class Said:
    """A state with its grade, and the place of the word that gives it; or a measure."""

    state: str
    grade: str
    at: int
    measure: Token | None = None

    def value(self, scale: Scale, *, negated: bool) -> str | None:
        """The option that is asserted on a scale; None where the words do not tell one."""
        if self.measure:
            return None if negated else ranged(scale, self.measure)
        if not negated:
            return scale.value(self.state, self.grade)
        # "not normal" tells no option, nor does "no severe dilatation"
        return None if self.state == "normal" or self.grade in _STRONG else scale.normal


def said(clause: Clause, at: int) -> list[Said]:
    """What a clause says of the name or state at a place, the plainest first."""
    mention = clause.mentions[at]
    if mention.kind == "state":
        called_normal = mention.name == "present" and _normal(clause, at)
        state = "normal" if called_normal else mention.name
        return [Said(state, grade(clause, at), at)]
    predicates = sorted(clause.of_kind("predicate"), key=lambda place: _distance(clause, at, place))
    found = [Said(clause.mentions[place].name, grade(clause, place), place) for place in predicates]
    if not predicates and clause.of_kind("negated_behind"):
        found = [Said(ANY, ANY, at)]
    return found


def measured(clause: Clause, at: int) -> list[Said]:
    """The numbers of a clause that belong to the name or state at a place."""
    owned = []
    for place in clause.of_kind("measure"):
        owners = [one for one in clause.of_kind("name", "state", "neutral") if one < place]
        if owners and owners[-1] == at and not _past(clause, place):
            owned.append(Said("", ANY, place, clause.mentions[place].measure))
    return owned


def grade(clause: Clause, at: int) -> str:
    """The grade nearest to a place, of those with no other state or predicate between."""
    places = [place for place in clause.of_kind("grade") if not _parted(clause, at, place)]
    nearest = min(places, key=lambda place: (abs(place - at), place > at), default=None)
    return ANY if nearest is None else clause.mentions[nearest].name


def ranged(scale: Scale, measure: Token) -> str | None:
    """The option whose range holds a number; None where an interval reaches into two."""
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
    """Predicates with another name between come after those without."""
    return _parted(clause, at, place, kinds=("verb",)), abs(place - at)


def _parted(clause: Clause, at: int, place: int, kinds: tuple[str, ...] = ("state", "predicate", "comma")) -> bool:
    low, high = sorted((at, place))
    between: tuple[Mention, ...] = clause.mentions[low + 1 : high]
    return any(mention.kind in kinds and mention.name != "present" for mention in between)


def _past(clause: Clause, place: int) -> bool:
    """Whether a number is an earlier one: `previously 38 %`, or `from 30 %` where another follows."""
    before = [mention.text for mention in clause.mentions[max(0, place - 2) : place]]
    later = any(other > place for other in clause.of_kind("measure"))
    past = clause.mentions[place - 1].kind == "historical" or "compared" in " ".join(before)
    return past or (later and "from" in before) or bool(_IGNORED_BEFORE.intersection(before) - {"from", "was"})
