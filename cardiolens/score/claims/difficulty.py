"""Difficulty and discrimination of items over models."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.score.statistics.factors import ArmFactors
from cardiolens.score.statistics.items import Floats
from cardiolens.score.statistics.metrics import ratio
from cardiolens.score.statistics.statistic import Row
from cardiolens.score.statistics.verdict_rows import Verdicts, blocks

# With two readers discrimination is always 1 or -1, and an item that few readers get wrong is hard for
# them, not suspect in itself.
FEWEST_READERS = 3
_COLUMNS = ("qa_id", "subtask", "tier", "channel", "status", "arm_id", "correct")
_ITEM = ("tier", "subtask", "qa_id")

Item = tuple[int, str, str]  # tier, subtask, question


def item_difficulty(verdicts: pa.Table | Verdicts, arms: Sequence[ArmFactors]) -> list[Row]:
    """Difficulty and discrimination of choice items by subtask.

    A reader's result on an item is its share of exact answers over the arms without control. `difficulty` is
    the mean over readers, in percent right; `discrimination` the correlation over readers of an item with all
    other items of its tier, averaged over items where it is defined. Simulated readers count only if there
    is no other: a reader of the truth gets everything right.
    """
    eligible = [arm for arm in arms if arm.control == "none"]
    eligible = [arm for arm in eligible if not arm.simulated] or eligible
    items, shares = _shares(verdicts, {arm.arm_id: arm.model for arm in eligible})
    rows: list[Row] = []
    tier, subtask = (np.array([item[at] for item in items]) for at in (0, 1))
    discrimination = np.full(len(items), np.nan)
    for number in np.unique(tier):
        discrimination[tier == number] = _discrimination(shares[tier == number])
    for name in dict.fromkeys(subtask.tolist()):
        of_subtask = shares[subtask == name]
        rates, defined = np.nanmean(of_subtask, axis=1), discrimination[subtask == name]
        defined = defined[~np.isnan(defined)]
        rows.append(
            {
                "scope": f"subtask:{name}",
                "n_items": len(of_subtask),
                "readers": int((~np.isnan(of_subtask)).any(axis=0).sum()),
                "difficulty": 100 * float(rates.mean()),
                "easiest": 100 * float(rates.max()),
                "hardest": 100 * float(rates.min()),
                "never_right": int((np.nanmax(of_subtask, axis=1) == 0).sum()),
                "discrimination": float(defined.mean()) if len(defined) else float("nan"),
                "n_discrimination": len(defined),
            }
        )
    return rows


def _shares(verdicts: pa.Table | Verdicts, reader: dict[str, str]) -> tuple[list[Item], Floats]:
    """The items in order, and the share of exact answers (item, reader), NaN where none was judged."""
    distinct = set[Item]()
    for rows in _judged(verdicts, reader):
        of_rows = rows.group_by(list(_ITEM)).aggregate([])
        distinct.update(zip(*(of_rows[name].to_pylist() for name in _ITEM), strict=True))
    items = sorted(distinct)
    questions = pa.array([item[2] for item in items], pa.string())
    names = list(dict.fromkeys(reader.values()))
    counts = np.zeros((2, len(items), len(names)))
    for rows in _judged(verdicts, reader):
        item = np.asarray(pc.index_in(rows["qa_id"], value_set=questions), np.int64)
        of_row = np.array([names.index(reader[arm]) for arm in rows["arm_id"].to_pylist()], np.int64)
        np.add.at(counts[0], (item, of_row), np.asarray(pc.fill_null(rows["correct"], False), np.float64))
        np.add.at(counts[1], (item, of_row), 1)
    shares = ratio(*counts)
    return items, shares[:, ~np.isnan(shares).all(axis=0)]


def _judged(verdicts: pa.Table | Verdicts, reader: dict[str, str]) -> Iterator[pa.Table]:
    """Yield the judged answers of readers to choice questions."""
    arms = pa.array(list(reader), pa.string())
    for rows in blocks(verdicts, _COLUMNS):
        is_answer = pc.and_(pc.equal(rows["channel"], "answer"), pc.equal(rows["status"], "judged"))
        yield rows.filter(pc.and_(is_answer, pc.is_in(rows["arm_id"], value_set=arms)))


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
