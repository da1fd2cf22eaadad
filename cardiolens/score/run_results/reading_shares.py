"""How the replies of each arm were read, and how far its scores depend on those that were not."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base.phases import heard_by
from cardiolens.score.statistics.factors import ArmFactors
from cardiolens.score.statistics.scores import score
from cardiolens.score.statistics.statistic import Settings
from cardiolens.score.statistics.verdict_rows import Verdicts
from cardiolens.storage.schemas import ASKED_BACK, ILLEGAL_SELECTION, NO_ANSWER, VERDICTS

NAME = "how replies were read"
READINGS = ("at_once", "asked_back", "no_answer", "unread", "refused", "cut", ILLEGAL_SELECTION)
TIERS = ("tier:1", "tier:3")  # of choice questions
_READING = {
    **{"ok": "at_once", ASKED_BACK: "asked_back", NO_ANSWER: "no_answer", "parse_error": "unread"},
    **{"inconsistent": "at_once", "contradicted": "unread", "refusal": "refused", "truncated": "cut"},
    ILLEGAL_SELECTION: ILLEGAL_SELECTION,
}
_COUNTED = ("status", "answer_type", "parse_status")


def reading_shares(verdicts: Verdicts, arms: Sequence[ArmFactors], min_n: int) -> list[Mapping[str, object]]:
    """Percentages of the replies to choice questions by model and by arm, and bounds of tier scores.

    `once`: the score if an answer that was asked back is wrong; `low`: the score, in which every reply that
    was not read is wrong; `high`: the score if all of these are right. Without such replies there are none.
    """
    counts = {arm.arm_id: _counts(verdicts.of_arm(arm.arm_id, _COUNTED)) for arm in arms}
    rows: list[Mapping[str, object]] = []
    for model in dict.fromkeys(arm.model for arm in arms):
        of_model = sum((counts[arm.arm_id] for arm in arms if arm.model == model), Counter[str]())
        rows += _shares(model, None, of_model)
    for arm in arms:
        bounds = _bounds(verdicts.of_arm(arm.arm_id), counts[arm.arm_id], min_n)
        rows += [row | bounds for row in _shares(arm.model, arm.arm_id, counts[arm.arm_id])]
    return rows


def _counts(verdicts: pa.Table) -> Counter[str]:
    is_choice = pc.not_equal(verdicts["answer_type"], "report")
    rows = verdicts.filter(pc.and_(pc.equal(verdicts["status"], "judged"), is_choice)).to_pylist()
    return Counter(_READING[row["parse_status"]] for row in rows)


def _shares(model: str, arm_id: str | None, counts: Counter[str]) -> Iterator[dict[str, object]]:
    """One row, none without replies."""
    if n_replies := counts.total():
        row: dict[str, object] = {"model": model, "arm_id": arm_id, "n": n_replies}
        yield row | {name: 100 * counts[name] / n_replies for name in READINGS}


def _bounds(verdicts: pa.Table, counts: Counter[str], min_n: int) -> dict[str, object]:
    """The tier scores of one arm by three ways to count what was not read at once; empty without any."""
    if not counts["asked_back"] and not counts["unread"]:
        return {}
    judged = _tier_scores(verdicts, min_n)
    values = {"once": judged, "low": judged, "high": judged}
    if counts["asked_back"]:
        values["once"] = _tier_scores(_with_all(verdicts, [ASKED_BACK], right=False), min_n)
    if counts["unread"]:
        values["high"] = _tier_scores(_with_all(verdicts, ["parse_error", "contradicted"], right=True), min_n)
    return {
        f"{name}_{scope.replace(':', '_')}": value
        for name, by_scope in values.items()
        for scope, value in by_scope.items()
    }


def _with_all(verdicts: pa.Table, statuses: Sequence[str], *, right: bool) -> pa.Table:
    """Verdicts in which those of some parse statuses are all wrong, or all right."""
    of_statuses = pc.is_in(verdicts["parse_status"], value_set=pa.array(statuses))
    chosen = pc.and_(of_statuses, pc.equal(verdicts["channel"], "answer"))
    is_chosen = pc.fill_null(chosen, False)
    rows, others = verdicts.filter(is_chosen), verdicts.filter(pc.invert(is_chosen))
    columns = {
        "parsed": rows["gold"] if right else pa.array([[]] * rows.num_rows, VERDICTS.field("parsed").type),
        "parse_status": pa.repeat("ok" if right else "parse_error", rows.num_rows),
        "correct": pa.array(np.full(rows.num_rows, right)),
    }
    changed = pa.table([columns.get(name, rows[name]) for name in VERDICTS.names], schema=VERDICTS)
    order = [(name, "ascending") for name in ("arm_id", "qa_id", "channel")]
    return pa.concat_tables([others.select(VERDICTS.names), changed]).sort_by(order)


def _tier_scores(verdicts: pa.Table, min_n: int) -> dict[str, float]:
    """The primary scores of one arm on the tiers of choice questions."""
    with heard_by(lambda phase: None):  # a line for each arm says nothing
        rows = score(verdicts, (), Settings(min_n, 1, 0)).scores.whole().to_pylist()
    return {
        row["scope"]: row["value"] for row in rows if row["metric"] == "primary" and row["scope"] in TIERS
    }
