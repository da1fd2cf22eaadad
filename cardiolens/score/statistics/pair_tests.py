"""Tests of a pair of arms as rows: against the margin, by swapped patients, McNemar, Wilcoxon."""

from collections.abc import Mapping, Sequence

import numpy as np

from cardiolens.base.phrasing import counted
from cardiolens.score.statistics.bootstrap import Interval
from cardiolens.score.statistics.cells import Cells, claimed_statistics
from cardiolens.score.statistics.hypothesis_tests import (
    MARGIN,
    beyond_p,
    equivalence_p,
    interval_p,
    margin_side,
)
from cardiolens.score.statistics.items import Bools, Items
from cardiolens.score.statistics.multiple_testing import BEYOND_P, EQUIVALENCE_P, SWAP_P
from cardiolens.score.statistics.paired import mcnemar_of, wilcoxon
from cardiolens.score.statistics.report_scores import Reports
from cardiolens.score.statistics.resampling import Resampling
from cardiolens.score.statistics.rows import as_row
from cardiolens.score.statistics.statistic import Basis, Statistic
from cardiolens.score.statistics.swap_test import split, stack, swap_p


def margin_rows(scope: str, difference: Statistic, sampling: Resampling) -> list[dict[str, object]]:
    """Rows of a difference against the margin: its 90 % interval, and on tiers the p of both claims."""
    row = as_row(("primary.equivalence", scope), difference, sampling.method, level=0.9)
    value, low, high = (float(str(row[name])) for name in ("value", "low", "high"))
    interval = Interval(value, low, high)
    words = f"within {MARGIN:g} points, 90 % interval; {row['method']}"
    side = margin_side(interval) or "neither within nor beyond"
    rows = [row | {"method": f"{side} {MARGIN:g} points, 90 % interval; {row['method']}"}]
    if scope.startswith("tier:"):  # no sentence calls a subtask or a sequence equivalent
        beyond = f"null: within {MARGIN:g} points; {row['method']}"
        for metric, test, method in ((EQUIVALENCE_P, equivalence_p, words), (BEYOND_P, beyond_p, beyond)):
            p = test(interval, int(difference.basis.units))
            rows.append(as_row((metric, scope), Statistic(np.array([p]), difference.basis), method))
    return rows


def swap_rows(
    sides: tuple[Cells, Cells],
    in_scope: Mapping[str, tuple[Items | Reports, Items | Reports]],
    sampling: Resampling,
    differences: Sequence[Mapping[str, object]],
) -> list[dict[str, object]]:
    """P-values of every claimable statistic, by swapping whole patients between the arms."""
    by_key = {(str(row["metric"]), str(row["scope"])): row for row in differences}
    ours, theirs = sides
    sizes = [len(rows) for rows in ours.rows]
    p_values = swap_p(
        stack(ours.rows),
        stack(theirs.rows),
        lambda sums: claimed_statistics(ours.parts, split(sums, sizes), sampling.min_n),
        sampling.coins,
    )
    return [
        as_row(
            (f"{metric}.{SWAP_P}", scope),
            Statistic(np.array([over_hospitals_p(p, by_key.get((metric, scope)), basis)]), basis),
            sampling.swap_method,
        )
        for (metric, scope), p in p_values.items()
        for basis in [Basis.of(in_scope[scope][0])]
    ]


def over_hospitals_p(p: float, difference: Mapping[str, object] | None, basis: Basis) -> float:
    """The p of swapped patients, or that of the interval over hospitals if it is larger.

    Swaps of patients know nothing of hospitals; whole hospitals are too few to be swapped.
    """
    if basis.n_hospitals is None or difference is None:
        return p
    value, low, high = (float(str(difference[name])) for name in ("value", "low", "high"))
    of_interval = interval_p(Interval(value, low, high), 0.0, int(basis.units))
    return max(p, of_interval)


def mcnemar_rows(
    in_scope: Mapping[str, tuple[Items | Reports, Items | Reports]],
) -> list[dict[str, object]]:
    """McNemar's test of every subtask with one right option."""
    rows = []
    for scope, (ours, theirs) in in_scope.items():
        if not (scope.startswith("subtask:") and isinstance(ours, Items) and isinstance(theirs, Items)):
            continue
        if ours.answer_type[0] != "multi":
            test = mcnemar_of(_is_right(ours), _is_right(theirs))
            statistic = Statistic(np.array([test.p]), Basis.of(ours))
            rows.append(as_row(("accuracy.mcnemar_p", scope), statistic, test.method))
    return rows


def wilcoxon_row(
    scope: str,
    in_scope: Mapping[str, tuple[Items | Reports, Items | Reports]],
    rows: Sequence[Mapping[str, object]],
    sampling: Resampling,
) -> dict[str, object]:
    """Signed ranks over the subtasks of a tier: whether most of them change in one direction."""
    items = in_scope[scope][0]
    assert isinstance(items, Items), "tier 1 is answered by picking options"
    subtasks, sizes = np.unique(items.subtask, return_counts=True)
    sufficient = {f"subtask:{subtask}" for subtask in subtasks[sizes >= sampling.min_n]}
    changes = [row["value"] for row in rows if row["metric"] == "primary" and row["scope"] in sufficient]
    test = wilcoxon(np.array(changes, np.float64))
    method = f"Wilcoxon signed rank over {counted(len(changes), 'subtask')}, {test.method}"
    return as_row(("primary.wilcoxon_p", scope), Statistic(np.array([test.p]), Basis.of(items)), method)


def _is_right(items: Items) -> Bools:
    return np.asarray(items.gold == items.parsed)
