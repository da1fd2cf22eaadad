"""Changes from judging a run again: verdicts before and after, joined by key."""

from collections import Counter
from dataclasses import dataclass

import pyarrow as pa

from cardiolens.score.statistics.verdict_rows import Verdicts

_KEY = ("arm_id", "qa_id", "channel")
_OUTCOME = ("status", "parse_status", "parsed", "correct")

Values = tuple[object, ...]


@dataclass(slots=True)
class Changes:
    """Number of verdicts, and of changed verdicts by their outcome before and after."""

    total: int
    new: int  # without an earlier verdict
    gone: int  # earlier verdicts without a later one
    kinds: Counter[tuple[str, str]]  # changed verdicts by outcome before and after

    @property
    def changed(self) -> int:
        return sum(self.kinds.values())


def changes(before: Verdicts, after: Verdicts) -> Changes:
    """Compare the verdicts of one run before and after, one arm at a time."""
    found = Changes(0, 0, 0, Counter())
    for arm in dict.fromkeys([*before.arms, *after.arms]):
        old, new = (_by_key(of_run.of_arm(arm, (*_KEY, *_OUTCOME))) for of_run in (before, after))
        found.total += len(new)
        found.new += len(new.keys() - old.keys())
        found.gone += len(old.keys() - new.keys())
        differing = [key for key in new.keys() & old.keys() if old[key] != new[key]]
        found.kinds.update((_kind(old[key]), _kind(new[key])) for key in differing)
    return found


def _by_key(verdicts: pa.Table) -> dict[Values, Values]:
    rows = zip(*(verdicts[name].to_pylist() for name in (*_KEY, *_OUTCOME)), strict=True)
    return {row[:3]: (*row[3:5], row[5] and tuple(row[5]), row[6]) for row in rows}


def _kind(outcome: Values) -> str:
    """Outcome in words: `right` or `wrong` (with the parse status unless `ok`), or the status if unjudged."""
    status, parse_status, _, correct = outcome
    if status != "judged":
        return str(status)
    grade = "right" if correct else "wrong"
    return grade if parse_status == "ok" else f"{grade} ({parse_status})"
