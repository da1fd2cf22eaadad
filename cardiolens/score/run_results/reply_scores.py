"""Scores computed from replies: option probabilities, controls, and open questions."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.config.sweep import StatisticsSpec
from cardiolens.config.sweep_factors import Arm
from cardiolens.protocol.tasks.questions import LESION
from cardiolens.score.statistics.confidence import confidence_scores
from cardiolens.score.statistics.factors import control_pairs, judged_arms
from cardiolens.score.statistics.item_scores import (
    ItemScores,
    lesion_scores,
    open_scores,
    order_scores,
    position_scores,
    table_of,
)
from cardiolens.score.statistics.statistic import Row, Settings
from cardiolens.score.statistics.verdict_rows import Verdicts, cohort, judged_shares
from cardiolens.storage.schemas import COMPLETIONS, REQUESTS, VERDICTS

# Verdicts, the options as displayed, and the log-probabilities that the engine returned.
WITH_REPLIES = pa.schema(
    [*VERDICTS, REQUESTS.field("option_keys"), COMPLETIONS.field("option_logprobs")], VERDICTS.metadata
)


def add_reply_columns(verdicts: pa.Table, requests: pa.Table, completions: pa.Table) -> pa.Table:
    """Append the columns of requests and final completions that these scores need to verdicts."""
    of_request = pc.index_in(item_of(verdicts), value_set=item_of(requests).combine_chunks())
    keys = completions["request_key"].combine_chunks()
    of_completion = pc.index_in(verdicts["request_key"], value_set=keys)
    option_keys = requests["option_keys"].take(of_request)
    logprobs = completions["option_logprobs"].take(of_completion)
    return verdicts.append_column("option_keys", option_keys).append_column("option_logprobs", logprobs)


def item_of(rows: pa.Table) -> pa.ChunkedArray:
    """The arm and question of each row, as one key."""
    return pc.binary_join_element_wise(rows["arm_id"], rows["qa_id"], "\x1f")


def scores_from_replies(rows: Verdicts, sweep_arms: Sequence[Arm], statistics: StatisticsSpec) -> pa.Table:
    """Compute these scores of one model from rows of WITH_REPLIES, at most two arms in memory."""
    settings = Settings(statistics.min_n, statistics.resamples, statistics.seed)
    return table_of(_rows(rows, sweep_arms, settings), judged_shares(rows))


def _rows(rows: Verdicts, sweep_arms: Sequence[Arm], settings: Settings) -> Iterator[Row]:
    def both(pair: tuple[str, str]) -> pa.Table:
        return pa.concat_tables(map(rows.of_arm, pair))

    scores = ItemScores.of(settings, cohort(rows))
    for arm in sorted(rows.arms):
        of_arm = rows.of_arm(arm)
        yield from confidence_scores(arm, of_arm, scores)
        yield from open_scores(arm, of_arm, scores)
    is_shuffled = {arm.arm_id for arm in sweep_arms if arm.control == "shuffled_options"}
    for arm in sorted(is_shuffled & {*rows.arms}):
        yield from position_scores(arm, rows.of_arm(arm), scores)
    arms = judged_arms(sweep_arms, [arm for arm in rows.arms if _is_judged(rows, arm)])
    for pair in control_pairs(arms, "reversed_options"):
        yield from order_scores(pair, both(pair), scores)
    for pair in control_pairs(arms, LESION):
        yield from lesion_scores(pair, both(pair), scores)


def _is_judged(rows: Verdicts, arm: str) -> bool:
    return bool(pc.any(pc.equal(rows.of_arm(arm, ["status"])["status"], "judged")).as_py())
