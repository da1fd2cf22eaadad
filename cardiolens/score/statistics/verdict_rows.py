"""Verdicts on disk, read one arm at a time, and how many of them were judged."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.storage import tables
from cardiolens.storage.schemas import VERDICTS
from cardiolens.storage.spool import Extent, UnlinkedFile

COMPLETE = 0.99  # share of judged items below which a score is incomplete
STATUSES = ("arm_id", "subtask", "channel", "status", "parse_status", "n")
_ORDER = ("qa_id", "channel")  # of the verdicts of an arm
_COMPRESSION = pa.ipc.IpcWriteOptions(compression="lz4")


class Verdicts:
    """The verdicts of many arms in a file; arms are in order of arrival.

    `schema` may have more columns than VERDICTS. An arm that came in several parts is sorted.
    """

    def __init__(self, schema: pa.Schema = VERDICTS) -> None:
        self._schema = schema
        self._file = UnlinkedFile()
        self._parts: dict[str, list[Extent]] = {}

    @staticmethod
    def of(table: pa.Table) -> "Verdicts":
        """The verdicts of a table."""
        verdicts = Verdicts()
        verdicts.add(table)
        return verdicts

    @property
    def arms(self) -> list[str]:
        """The arms that have verdicts."""
        return list(self._parts)

    def add(self, verdicts: pa.Table) -> None:
        """Append verdicts of any arms."""
        for arm in pc.unique(verdicts["arm_id"]).to_pylist():
            sink, rows = pa.BufferOutputStream(), verdicts.filter(pc.equal(verdicts["arm_id"], arm))
            with pa.ipc.new_stream(sink, self._schema, options=_COMPRESSION) as writer:
                writer.write_table(rows.combine_chunks())
            self._parts.setdefault(arm, []).append(self._file.append(sink.getvalue()))

    def extend(self, other: "Verdicts") -> None:
        """Append the verdicts of other arms, sorted by arm."""
        for arm in sorted(other.arms):
            self.add(other.of_arm(arm, self._schema.names))

    def of_arm(self, arm: str, columns: Sequence[str] = VERDICTS.names) -> pa.Table:
        """The verdicts of one arm; an empty table if it has none."""
        places = self._parts.get(arm, [])
        if len(places) == 1:
            return self._part(places[0], columns)
        needed = list(dict.fromkeys([*columns, *_ORDER]))
        rows = tables.concat((self._part(place, needed) for place in places), self._schema)
        return rows.sort_by([(name, "ascending") for name in _ORDER]).select(list(columns))

    def _part(self, place: Extent, columns: Sequence[str]) -> pa.Table:
        fields = [self._schema.get_field_index(name) for name in columns]
        options = pa.ipc.IpcReadOptions(included_fields=fields)
        with pa.ipc.open_stream(self._file.read(place), options=options) as reader:
            return reader.read_all().select(list(columns))

    def blocks(self, columns: Sequence[str] = VERDICTS.names) -> Iterator[pa.Table]:
        """Yield the verdicts of each arm."""
        return (self.of_arm(arm, columns) for arm in self._parts)

    def whole(self) -> pa.Table:
        """Load all verdicts into memory."""
        return pa.concat_tables([VERDICTS.empty_table(), *self.blocks()])


def cohort(verdicts: Verdicts) -> list[str]:
    """Patients of verdicts, sorted; their positions are the clusters of every bootstrap."""
    names = (pc.unique(rows["patient_id"]).to_pylist() for rows in verdicts.blocks(["patient_id"]))
    return sorted({patient for of_arm in names for patient in of_arm})


def status_counts(verdicts: Verdicts) -> list[dict[str, Any]]:
    """Count the verdicts of each arm, subtask and channel by status, sorted."""
    names = list(STATUSES[:-1])
    counts = (rows.group_by(names).aggregate([([], "count_all")]) for rows in verdicts.blocks(names))
    counted = [row for table in counts for row in table.rename_columns(list(STATUSES)).to_pylist()]
    return sorted(counted, key=lambda row: [row[name] or "" for name in names])


def judged_shares(verdicts: Verdicts) -> dict[tuple[str, str], float]:
    """Share of judged items by (arm, scope), without the texts of reports.

    Numbers and rankings are in no score of a tier or sequence.
    """
    keys = ["arm_id", "tier", "sequence", "subtask", "channel", "status"]
    n_items: Counter[tuple[str, str]] = Counter()
    n_judged: Counter[tuple[str, str]] = Counter()
    for rows in verdicts.blocks(keys):
        items = rows.filter(pc.not_equal(rows["channel"], "text"))
        for row in items.group_by(keys).aggregate([([], "count_all")]).to_pylist():
            scopes = [f"subtask:{row['subtask']}"]
            if row["channel"] in ("answer", "fields"):
                scopes += [f"tier:{row['tier']}"]
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
