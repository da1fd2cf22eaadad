"""Verdicts on disk, read one arm at a time."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.storage import tables
from cardiolens.storage.schemas import VERDICTS
from cardiolens.storage.spool import Spool

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

    @property
    def num_rows(self) -> int:
        return self._spool.num_rows

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
