"""Changes from judging a run again: verdicts before and after, joined by key."""

from collections import Counter
from dataclasses import dataclass

import pyarrow as pa

from cardiolens.score.statistics.verdict_rows import Verdicts

_KEY = ("arm_id", "qa_id", "channel")
_OUTCOME = ("status", "parse_status", "parsed", "correct")

Values = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Changes:
    """Number of verdicts, and of changed verdicts by their outcome before and after."""

    total: int
    new: int  # without an earlier verdict
    gone: int  # earlier verdicts without a later one
    kinds: Counter[tuple[str, str]]  # changed verdicts by outcome before and after

    def __add__(self, other: "Changes") -> "Changes":
        numbers = self.total + other.total, self.new + other.new, self.gone + other.gone
        return Changes(*numbers, self.kinds + other.kinds)

    @property
    def changed(self) -> int:
        return sum(self.kinds.values())


def changes(before: Verdicts, after: Verdicts) -> Changes:
    """Compare the verdicts of one run before and after, one arm at a time."""
    columns = (*_KEY, *_OUTCOME)
    total = Changes(0, 0, 0, Counter())
    for arm in dict.fromkeys([*before.arms, *after.arms]):
        total += _of_arm(before.of_arm(arm, columns), after.of_arm(arm, columns))
    return total


def _of_arm(before: pa.Table, after: pa.Table) -> Changes:
    if before.equals(after):
        return Changes(after.num_rows, 0, 0, Counter())
    old, new = _by_key(before), _by_key(after)
    differing = [key for key, outcome in new.items() if key in old and old[key] != outcome]
    kinds = Counter((_kind(old[key]), _kind(new[key])) for key in differing)
    return Changes(len(new), len(set(new) - set(old)), len(set(old) - set(new)), kinds)


def _by_key(verdicts: pa.Table) -> dict[Values, Values]:
    columns = verdicts.select([*_KEY, *_OUTCOME]).to_pydict()
    keys = zip(*(columns[name] for name in _KEY), strict=True)
    outcomes = zip(*(map(_hashable, columns[name]) for name in _OUTCOME), strict=True)
    return dict(zip(keys, outcomes, strict=True))


def _hashable(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _kind(outcome: Values) -> str:
    """Outcome in words: `right` or `wrong` (with the parse status unless `ok`), or the status if unjudged."""
    status, parse_status, _, correct = outcome
    if status != "judged":
        return str(status)
    grade = "right" if correct else "wrong"
    return grade if parse_status == "ok" else f"{grade} ({parse_status})"
