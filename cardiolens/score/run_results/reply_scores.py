"""Scores computed from replies: option probabilities and position bias."""

from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.config.arms import Arm
from cardiolens.config.sweep import StatisticsSpec
from cardiolens.protocol.prompts.question import LEADING
from cardiolens.protocol.tasks.twins import LESION
from cardiolens.score.run_results.groups import judged_arms
from cardiolens.score.statistics.confidence import AUROC, AVERAGE_PRECISION, confidence_scores
from cardiolens.score.statistics.factors import control_pairs
from cardiolens.score.statistics.lesion_twins import lesion_scores
from cardiolens.score.statistics.open_scores import open_scores
from cardiolens.score.statistics.option_order import order_scores, position_scores, suggestion_scores
from cardiolens.score.statistics.verdict_rows import Verdicts, cohort
from cardiolens.storage import tables
from cardiolens.storage.schemas import COMPLETIONS, REQUESTS, SCORES, VERDICTS

# Verdicts, the options as displayed, and the log-probabilities that the engine returned.
WITH_REPLIES = pa.schema(
    [*VERDICTS, REQUESTS.field("option_keys"), COMPLETIONS.field("option_logprobs")], VERDICTS.metadata
)


def add_reply_columns(verdicts: pa.Table, requests: pa.Table, completions: pa.Table) -> pa.Table:
    """Append the columns of requests and final completions that these scores need to verdicts."""
    of_request = pc.index_in(_item(verdicts), value_set=_item(requests).combine_chunks())
    keys = completions["request_key"].combine_chunks()
    of_completion = pc.index_in(verdicts["request_key"], value_set=keys)
    option_keys = requests["option_keys"].take(of_request)
    logprobs = completions["option_logprobs"].take(of_completion)
    return verdicts.append_column("option_keys", option_keys).append_column("option_logprobs", logprobs)


def _item(rows: pa.Table) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(rows["arm_id"], rows["qa_id"], "\x1f")


def scores_from_replies(rows: Verdicts, sweep_arms: Sequence[Arm], statistics: StatisticsSpec) -> pa.Table:
    """Compute these scores of one model from rows of WITH_REPLIES, at most two arms in memory."""
    resampling = statistics.resamples, statistics.seed
    names = sorted(rows.arms)
    patients = cohort(rows)
    by_arm = [
        confidence_scores(verdicts, requests, completions, *resampling, patients=patients)
        for verdicts, requests, completions in (_parts(rows, [arm]) for arm in names)
    ]
    shuffled = {arm.arm_id for arm in sweep_arms if arm.control == "shuffled_options"}
    shuffled_arms = [arm for arm in names if arm in shuffled]
    shuffled_patients = sorted(
        {name for arm in shuffled_arms for name in cohort(rows.of_arm(arm, ["patient_id"]))}
    )
    places = [
        position_scores(*_parts(rows, [arm])[:2], *resampling, patients=shuffled_patients)
        for arm in shuffled_arms
    ]
    with_verdicts = [arm for arm in names if _is_judged(rows, arm)]
    reversed_pairs = control_pairs(judged_arms(sweep_arms, with_verdicts), "reversed_options")
    orders = [
        order_scores(*_parts(rows, pair)[:2], [pair], *resampling, patients=patients)
        for pair in sorted(reversed_pairs)
    ]
    led = [
        suggestion_scores(*_parts(rows, pair)[:2], pair, *resampling, control=control, patients=patients)
        for control in LEADING
        for pair in sorted(control_pairs(judged_arms(sweep_arms, with_verdicts), control))
    ]
    twins = [
        lesion_scores(_parts(rows, pair)[0], pair, *resampling, patients=patients)
        for pair in sorted(control_pairs(judged_arms(sweep_arms, with_verdicts), LESION))
    ]
    opened = [open_scores(_parts(rows, [arm])[0], *resampling, patients=patients) for arm in names]
    return tables.concat([*_separation_first(by_arm), *places, *orders, *led, *opened, *twins], SCORES)


def _parts(rows: Verdicts, arms: Collection[str]) -> tuple[pa.Table, pa.Table, pa.Table]:
    """Split the rows of some arms into the verdict, request and completion columns."""
    arm_rows = pa.concat_tables(rows.of_arm(arm) for arm in arms)
    verdicts, requests = arm_rows.select(VERDICTS.names), arm_rows.select(["arm_id", "qa_id", "option_keys"])
    return verdicts, requests, arm_rows.select(["request_key", "option_logprobs"])


def _is_judged(rows: Verdicts, arm: str) -> bool:
    return bool(pc.any(pc.equal(rows.of_arm(arm, ["status"])["status"], "judged")).as_py())


def _separation_first(by_arm: Sequence[pa.Table]) -> list[pa.Table]:
    """Order scores: AUROC and average precision of all arms first, then all other metrics."""
    scores = tables.concat(by_arm, SCORES)
    metric = scores["metric"]
    is_separation = pc.or_(pc.starts_with(metric, AUROC), pc.starts_with(metric, AVERAGE_PRECISION))
    return [scores.filter(is_separation), scores.filter(pc.invert(is_separation))]
