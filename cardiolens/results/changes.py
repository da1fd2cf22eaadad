"""What judging again changed: verdicts of a run before and after, joined by key."""

from collections import Counter
from dataclasses import dataclass

import pyarrow as pa

_KEY = ("arm_id", "qa_id", "channel")
_SAID = ("status", "parse_status", "parsed", "correct")

Ended = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Changes:
    """How many verdicts were made and how many changed, and from what to what."""

    made: int
    new: int  # without an earlier verdict
    gone: int  # without a later one
    kinds: Counter[tuple[str, str]]  # of those that changed: how they ended before and after

    @property
    def changed(self) -> int:
        return sum(self.kinds.values())


def changes(before: pa.Table, after: pa.Table) -> Changes:
    """Compare two tables of verdicts of one run."""
    old, new = _by_key(before), _by_key(after)
    differing = [key for key, said in new.items() if key in old and old[key] != said]
    kinds = Counter((_ended(old[key]), _ended(new[key])) for key in differing)
    return Changes(len(new), len(set(new) - set(old)), len(set(old) - set(new)), kinds)


def _by_key(verdicts: pa.Table) -> dict[Ended, Ended]:
    columns = verdicts.select([*_KEY, *_SAID]).to_pydict()
    keys = zip(*(columns[name] for name in _KEY), strict=True)
    said = zip(*(map(_hashable, columns[name]) for name in _SAID), strict=True)
    return dict(zip(keys, said, strict=True))


def _hashable(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _ended(said: Ended) -> str:
    """`right`, `wrong` (with the parse status unless `ok`), or why there is no judgement."""
    status, parse_status, _, correct = said
    if status != "judged":
        return str(status)
    grade = "right" if correct else "wrong"
    return grade if parse_status == "ok" else f"{grade} ({parse_status})"
