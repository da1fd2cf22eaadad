"""Share of answers that change when a request is repeated (control `repeat`)."""

from collections.abc import Collection, Mapping

import numpy as np

from cardiolens.score.statistics.answers import Answers
from cardiolens.score.statistics.factors import ArmPair
from cardiolens.score.statistics.items import Floats, Items
from cardiolens.score.statistics.metrics import ratio
from cardiolens.score.statistics.report_scores import Reports
from cardiolens.score.statistics.rows import TIERS, as_row
from cardiolens.score.statistics.statistic import Basis, Statistic

ANSWERS_CHANGED = "answers_changed"


def repeat_rows(
    judged: Mapping[str, Answers], repeats: Collection[ArmPair], weights: Floats, method: str
) -> list[dict[str, object]]:
    """Compute one score row per tier and pair of an arm and its repeat.

    `answers_changed` is the share of answers that name other options; of reports, whose fields name other
    entities. Unparsed answers count as equal. Only items judged in both arms count.
    """
    rows = []
    for arm, again in sorted(repeats):
        first, second = judged[arm], judged[again]
        first, second = first.common_with(second), second.common_with(first)
        for tier in TIERS:
            before, after = _answer_rows(first.in_scope(tier)), _answer_rows(second.in_scope(tier))
            if len(before):
                statistic = _changed(before, after, weights)
                row = as_row((ANSWERS_CHANGED, tier), statistic, method)
                rows.append({"arm_id": arm, "versus_arm_id": again} | row)
    return rows


def _answer_rows(rows: Items | Reports) -> Items | Reports:
    return rows if isinstance(rows, Items) else rows.where(rows.channel == "fields")


def _changed(before: Items | Reports, after: Items | Reports, weights: Floats) -> Statistic:
    units = weights.shape[1]
    changed = np.bincount(before.patient, weights=before.parsed != after.parsed, minlength=units)
    n_answers = np.bincount(before.patient, minlength=units).astype(np.float64)
    return Statistic(ratio(weights @ changed, weights @ n_answers), Basis.of(before))
