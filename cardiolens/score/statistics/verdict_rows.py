"""Verdicts on disk, read one arm at a time, and how many of them were judged."""

import pickle
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.storage import tables
from cardiolens.storage.schemas import VERDICTS
from cardiolens.storage.spool import Extent, Spool, UnlinkedFile

COMPLETE = 0.99  # share of judged items below which a score is incomplete
STATUSES = ("arm_id", "subtask", "channel", "status", "parse_status", "n")
_ORDER = ("qa_id", "channel")  # of the verdicts of an arm


class Verdicts:
    """The verdicts of many arms in a file; arms are in order of arrival.

    `schema` may have more columns than VERDICTS. An arm that came in several parts is sorted.
    """

    def __init__(self, schema: pa.Schema = VERDICTS) -> None:
        self._schema = schema
        self._spool = Spool(schema)
        self._parts: dict[str, list[int]] = {}

    @property
    def arms(self) -> list[str]:
        """The arms that have verdicts."""
        return list(self._parts)

    def add(self, verdicts: pa.Table) -> None:
        """Append verdicts of any arms."""
        for arm, rows in by_arm(verdicts):
            self._parts.setdefault(arm, []).append(self._spool.add(rows))

    def extend(self, other: "Verdicts") -> None:
        """Append the verdicts of other arms, sorted by arm."""
        for arm in sorted(other.arms):
            self.add(other.of_arm(arm, self._schema.names))

    def of_arm(self, arm: str, columns: Sequence[str] | None = None) -> pa.Table:
        """The verdicts of one arm; an empty table if it has none."""
        names = self._schema.names if columns is None else list(columns)
        places = self._parts.get(arm, [])
        if len(places) == 1:
            return self._spool.part(places[0], names)
        needed = list(dict.fromkeys([*names, *_ORDER]))
        rows = tables.concat((self._spool.part(place, needed) for place in places), self._schema)
        return rows.sort_by([(name, "ascending") for name in _ORDER]).select(names)

    def blocks(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the verdicts of each arm."""
        return (self.of_arm(arm, columns) for arm in self._parts)

    def whole(self) -> pa.Table:
        """Load all verdicts into memory."""
        return pa.concat_tables([VERDICTS.empty_table(), *self.blocks()])


def blocks(verdicts: pa.Table | Verdicts, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Yield columns of verdicts in tables of whole arms: a table as it is, `Verdicts` arm by arm."""
    if isinstance(verdicts, Verdicts):
        yield from verdicts.blocks(columns)
    else:
        yield verdicts.select(list(columns))


def by_arm(verdicts: pa.Table | Verdicts) -> Iterator[tuple[str, pa.Table]]:
    """Yield the rows of each arm; contiguous rows of a table are sliced without a copy."""
    if isinstance(verdicts, Verdicts):
        yield from ((arm, verdicts.of_arm(arm)) for arm in verdicts.arms)
        return
    encoded = verdicts["arm_id"].combine_chunks().dictionary_encode()
    number = np.asarray(encoded.indices, np.int64)
    order = np.argsort(number, kind="stable")
    ends = np.searchsorted(number[order], np.arange(len(encoded.dictionary) + 1))
    for name, first, end in zip(encoded.dictionary.to_pylist(), ends[:-1], ends[1:], strict=True):
        rows = order[first:end]
        together = rows[-1] - rows[0] == len(rows) - 1
        yield name, verdicts.slice(int(rows[0]), len(rows)) if together else verdicts.take(rows)


def cohort(verdicts: pa.Table | Verdicts) -> list[str]:
    """Patients of verdicts, sorted; their positions are the clusters of every bootstrap."""
    names = (pc.unique(rows["patient_id"]).to_pylist() for rows in blocks(verdicts, ["patient_id"]))
    return sorted({patient for of_block in names for patient in of_block})


def status_counts(verdicts: pa.Table | Verdicts) -> list[dict[str, object]]:
    """Count the verdicts of each arm, subtask and channel by status, sorted."""
    names = list(STATUSES[:-1])
    counts = [
        rows.group_by(names).aggregate([([], "count_all")]).rename_columns(list(STATUSES))
        for rows in blocks(verdicts, names)
    ]
    if not counts:
        return []
    rows: list[dict[str, object]] = (
        pa.concat_tables(counts).sort_by([(name, "ascending") for name in names]).to_pylist()
    )
    return rows


def judged_shares(verdicts: pa.Table | Verdicts) -> dict[tuple[str, str], float]:
    """Share of judged items by (arm, scope), without the texts of reports."""
    keys = ["arm_id", "tier", "sequence", "subtask", "status"]
    n_items: Counter[tuple[str, str]] = Counter()
    n_judged: Counter[tuple[str, str]] = Counter()
    for rows in blocks(verdicts, [*keys, "channel"]):
        items = rows.filter(pc.not_equal(rows["channel"], "text"))
        for row in items.group_by(keys).aggregate([([], "count_all")]).to_pylist():
            scopes = [f"tier:{row['tier']}", f"subtask:{row['subtask']}"]
            scopes += [f"sequence:{row['sequence']}"] if row["tier"] == 1 else []
            for scope in scopes:
                n_items[row["arm_id"], scope] += row["count_all"]
                n_judged[row["arm_id"], scope] += row["count_all"] * (row["status"] == "judged")
    return {key: n_judged[key] / number for key, number in n_items.items()}


def percent_judged(shares: Mapping[tuple[str, str], float], arm: str, scope: str) -> float | None:
    """Percent of the items of a score that were judged; None where it is complete, at 99 %."""
    share = shares.get((arm, scope), shares.get((arm, "tier:1"), 1.0))
    return None if share >= COMPLETE else 100 * share


def percent_read(row: Mapping[str, object]) -> int | None:
    """Percent of the replies behind a score that could be read; None from 99 % on."""
    items, *unread = (int(str(row[name])) for name in ("n_items", "n_parse_error", "n_refusal"))
    n_read = items - sum(unread)
    return None if n_read >= COMPLETE * items else 100 * n_read // items


Name = TypeVar("Name")
Value = TypeVar("Value")

AT_HAND = 32  # values cached in memory: an arm is compared with several others in turn


class SpilledMapping(Mapping[Name, Value]):
    """A mapping of pickled values. Only the process that made it writes; pickled copies only read."""

    def __init__(self) -> None:
        self._file = UnlinkedFile()
        self._places: dict[Name, Extent] = {}
        self._at_hand: dict[Name, Value] = {}  # the last used are last

    def __getstate__(self) -> tuple[UnlinkedFile, dict[Name, Extent]]:
        return self._file, self._places

    def __setstate__(self, state: tuple[UnlinkedFile, dict[Name, Extent]]) -> None:
        self._file, self._places = state
        self._at_hand = {}

    def __setitem__(self, name: Name, value: Value) -> None:
        self._places[name] = self._file.append(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
        self._keep(name, value)

    def __getitem__(self, name: Name) -> Value:
        is_cached = name in self._at_hand
        value = self._at_hand.pop(name) if is_cached else pickle.loads(self._file.read(self._places[name]))
        self._keep(name, value)
        return value

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[Name]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def _keep(self, name: Name, value: Value) -> None:
        self._at_hand[name] = value
        if len(self._at_hand) > AT_HAND:
            del self._at_hand[next(iter(self._at_hand))]
