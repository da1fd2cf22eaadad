"""Difficulty and discrimination of items over models (protocol 16.11)."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.score.statistics.factors import ArmFactors
from cardiolens.score.statistics.items import Floats
from cardiolens.score.statistics.statistic import Row
from cardiolens.score.statistics.verdict_rows import Verdicts, blocks
from cardiolens.storage.schemas import VERDICTS

# With two readers discrimination is always 1 or -1, and an item that few readers get wrong is hard for
# them, not suspect in itself.
FEWEST_READERS = 3
_ITEM = ("qa_id", "subtask", "tier")
_TOTALS_SCHEMA = pa.schema(
    [
        *(VERDICTS.field(name) for name in _ITEM),
        ("reader", pa.string()),
        ("right", pa.float64()),
        ("answers", pa.int64()),
    ]
)
_AT_ONCE = 2**18  # rows that are summed at once


def item_difficulty(verdicts: pa.Table | Verdicts, arms: Sequence[ArmFactors]) -> tuple[list[Row], list[Row]]:
    """Difficulty and discrimination of choice items by subtask, and the items that no reader got right.

    A reader's result on an item is its share of exact answers over the arms without control. `difficulty` is
    the mean over readers, in percent right; `discrimination` the correlation over readers of an item with all
    other items of its tier, averaged over items where it is defined. Simulated readers count only if there
    is no other: a reader of the truth gets everything right.
    """
    eligible = [arm for arm in arms if arm.control == "none"]
    eligible = [arm for arm in eligible if not arm.simulated] or eligible
    reader = {arm.arm_id: arm.model for arm in eligible}
    items = _results(verdicts, reader)
    if not items.num_rows:
        return [], []
    listed = _never_right(items) if len(pc.unique(items["reader"])) >= FEWEST_READERS else ()
    return list(_by_subtask(items)), list(listed)


def _results(verdicts: pa.Table | Verdicts, reader: Mapping[str, str]) -> pa.Table:
    """One row per item and reader, with the share of its exact answers."""
    totals, pending = _TOTALS_SCHEMA.empty_table(), [_TOTALS_SCHEMA.empty_table()]
    for rows in blocks(verdicts, [*_ITEM, "channel", "status", "arm_id", "correct"]):
        pending.append(_counts(rows, reader))
        if sum(part.num_rows for part in pending) > _AT_ONCE + totals.num_rows:
            totals, pending = _summed([totals, *pending]), []
    totals = _summed([totals, *pending])
    share = pc.divide(totals["right"], pc.cast(totals["answers"], pa.float64()))
    keys = [*_ITEM, "reader"]
    results = totals.select(keys).append_column("right_mean", share)
    return results.sort_by([(key, "ascending") for key in keys])


def _counts(verdicts: pa.Table, reader: Mapping[str, str]) -> pa.Table:
    """Count exact and all answers of some verdicts, one row per item and reader."""
    picked = verdicts.filter(
        pc.and_(pc.equal(verdicts["channel"], "answer"), pc.equal(verdicts["status"], "judged"))
    )
    picked = picked.filter(pc.is_in(picked["arm_id"], pa.array(list(reader), pa.string())))
    names = pa.array([reader[arm] for arm in picked["arm_id"].to_pylist()], pa.string())
    table = pa.table(
        {
            "qa_id": picked["qa_id"],
            "subtask": picked["subtask"],
            "tier": picked["tier"],
            "reader": names,
            "right": pc.cast(pc.fill_null(picked["correct"], False), pa.float64()),
            "answers": pa.repeat(1, picked.num_rows),
        },
        schema=_TOTALS_SCHEMA,
    )
    return _summed([table])


def _summed(parts: Sequence[pa.Table]) -> pa.Table:
    keys = [*_ITEM, "reader"]
    summed = pa.concat_tables(parts).group_by(keys).aggregate([("right", "sum"), ("answers", "sum")])
    return summed.rename_columns(_TOTALS_SCHEMA.names)


def _by_subtask(items: pa.Table) -> Iterator[Row]:
    for tier in sorted(pc.unique(items["tier"]).to_pylist()):
        of_tier = items.filter(pc.equal(items["tier"], tier))
        results, subtasks = _matrix(of_tier)
        discrimination = _discrimination(results)
        for subtask in sorted(set(subtasks.tolist())):
            is_of_subtask = subtasks == subtask
            readers = int((~np.isnan(results[is_of_subtask])).any(axis=0).sum())
            rates = np.nanmean(results[is_of_subtask], axis=1)
            defined = discrimination[is_of_subtask][~np.isnan(discrimination[is_of_subtask])]
            yield {
                "scope": f"subtask:{subtask}",
                "n_items": int(is_of_subtask.sum()),
                "readers": readers,
                "difficulty": 100 * float(rates.mean()),
                "easiest": 100 * float(rates.max()),
                "hardest": 100 * float(rates.min()),
                "never_right": int((np.nanmax(results[is_of_subtask], axis=1) == 0).sum()),
                "discrimination": float(defined.mean()) if len(defined) else float("nan"),
                "n_discrimination": len(defined),
            }


def _matrix(items: pa.Table) -> tuple[Floats, np.ndarray]:
    """Share of exact answers (item, reader), NaN where not judged, and the subtask of each item."""
    names = sorted(set(items["qa_id"].to_pylist()))
    readers = sorted(set(items["reader"].to_pylist()))
    item_codes = np.asarray(pc.index_in(items["qa_id"], value_set=pa.array(names)))
    reader_codes = np.asarray(pc.index_in(items["reader"], value_set=pa.array(readers)))
    shares = np.full((len(names), len(readers)), np.nan)
    shares[item_codes, reader_codes] = np.asarray(items["right_mean"])
    subtasks = np.empty(len(names), dtype=object)
    subtasks[item_codes] = np.asarray(items["subtask"].to_pylist(), dtype=object)
    return shares, subtasks


def _discrimination(results: Floats) -> Floats:
    """Correlation of each item with the mean of all others, over readers that answered every item."""
    complete = results[:, ~np.isnan(results).any(axis=0)]
    n_items, readers = complete.shape
    if readers < FEWEST_READERS or n_items < 2:
        return np.full(len(results), np.nan)
    rest = (complete.sum(axis=0) - complete) / (n_items - 1)
    item, rest = complete - complete.mean(axis=1, keepdims=True), rest - rest.mean(axis=1, keepdims=True)
    spread = np.sqrt((item**2).sum(axis=1) * (rest**2).sum(axis=1))
    # undefined for an item with the same result for all readers
    correlations: Floats = np.full(n_items, np.nan)
    np.divide((item * rest).sum(axis=1), spread, out=correlations, where=spread > 1e-12)
    return correlations


def _never_right(items: pa.Table) -> Iterator[Row]:
    """Items to review: no reader gave the gold answer in any arm."""
    best = items.group_by(["qa_id", "subtask"]).aggregate([("right_mean", "max"), ("reader", "count")])
    wrong = best.filter(pc.equal(best["right_mean_max"], 0)).sort_by(
        [("subtask", "ascending"), ("qa_id", "ascending")]
    )
    for row in wrong.to_pylist():
        yield {"qa_id": row["qa_id"], "scope": f"subtask:{row['subtask']}", "readers": row["reader_count"]}
