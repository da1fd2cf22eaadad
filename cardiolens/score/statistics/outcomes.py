"""Outcomes of requests: what was judged, what was not, and why."""

from collections import Counter
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.score.statistics.verdict_rows import Verdicts, blocks
from cardiolens.storage.tables import concat

COMPLETE = 0.99  # share of judged items below which a cell is flagged as incomplete
INCOMPLETE = "incomplete"  # prefix of the method of such a cell

STATUSES = pa.schema(
    [
        ("arm_id", pa.string()),
        ("subtask", pa.string()),
        ("channel", pa.string()),
        ("status", pa.string()),  # of verdicts
        ("parse_status", pa.string()),
        ("n", pa.int64()),
    ]
)


def status_counts(verdicts: pa.Table | Verdicts) -> pa.Table:
    """Count the verdicts of each arm, subtask and channel by status, sorted."""
    names = STATUSES.names[:-1]
    tables = [
        rows.group_by(names).aggregate([([], "count_all")]).rename_columns(STATUSES.names).cast(STATUSES)
        for rows in blocks(verdicts, names)
    ]
    return concat(tables, STATUSES).sort_by([(name, "ascending") for name in names])


def judged_shares(verdicts: pa.Table | Verdicts) -> dict[tuple[str, str], float]:
    """Share of judged items by (arm, scope), without the texts of reports."""
    keys = ["arm_id", "tier", "sequence", "subtask", "status"]
    n_items: Counter[tuple[str, str]] = Counter()
    n_judged: Counter[tuple[str, str]] = Counter()
    for rows in blocks(verdicts, [*keys, "channel"]):
        items = rows.filter(pc.not_equal(rows["channel"], "text"))
        for row in items.group_by(keys).aggregate([([], "count_all")]).to_pylist():
            for scope in _scopes(row["tier"], row["sequence"], row["subtask"]):
                n_items[row["arm_id"], scope] += row["count_all"]
                n_judged[row["arm_id"], scope] += row["count_all"] * (row["status"] == "judged")
    return {key: n_judged[key] / number for key, number in n_items.items()}


def _scopes(tier: int, sequence: str, subtask: str) -> list[str]:
    of_sequence = [f"sequence:{sequence}"] if tier == 1 else []
    return [f"tier:{tier}", f"subtask:{subtask}", *of_sequence]


def flag_incomplete(row: dict[str, object], shares: Mapping[tuple[str, str], float]) -> dict[str, object]:
    """Note in the method of a score row if its cell is incomplete."""
    arm = str(row["arm_id"])
    share = shares.get((arm, str(row["scope"])), shares.get((arm, "tier:1"), 1.0))
    if share >= COMPLETE:
        return row
    # floored, so that 98.96 % is not printed as complete
    return row | {"method": f"{INCOMPLETE}, {int(share * 1000) / 10} % of items judged; {row['method']}"}


def percent_read(row: Mapping[str, object]) -> int | None:
    """Percentage of the replies behind a score that could be read; None from 99 % on."""
    items, *unread = (int(str(row[name])) for name in ("n_items", "n_parse_error", "n_refusal"))
    n_read = items - sum(unread)
    return None if n_read >= COMPLETE * items else 100 * n_read // items
