"""Scores that need more of a model than its verdicts: of option probabilities, and of places of options."""

from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.config.arms import Arm
from cardiolens.config.steps import StatisticsSpec
from cardiolens.score.run_results.judged_arms import judged_arms
from cardiolens.score.statistics.confidence import AUROC, AVERAGE_PRECISION, confidence_scores
from cardiolens.score.statistics.factors import beside_control
from cardiolens.score.statistics.position_bias import order_scores, position_scores
from cardiolens.score.statistics.verdicts import Verdicts, cohort
from cardiolens.storage import tables
from cardiolens.storage.tables import COMPLETIONS, REQUESTS, SCORES, VERDICTS

# Verdicts, the options as displayed, and what the engine gave of their probabilities.
WITH_REPLIES = pa.schema(
    [*VERDICTS, REQUESTS.field("option_keys"), COMPLETIONS.field("option_logprobs")], VERDICTS.metadata
)


def with_replies(verdicts: pa.Table, requests: pa.Table, completions: pa.Table) -> pa.Table:
    """Verdicts beside what these scores need of their requests, and of the completions that count."""
    of_request = pc.index_in(_item(verdicts), value_set=_item(requests).combine_chunks())
    keys = completions["request_key"].combine_chunks()
    of_completion = pc.index_in(verdicts["request_key"], value_set=keys)
    shown = requests["option_keys"].take(of_request)
    told = completions["option_logprobs"].take(of_completion)
    return verdicts.append_column("option_keys", shown).append_column("option_logprobs", told)


def _item(rows: pa.Table) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(rows["arm_id"], rows["qa_id"], "\x1f")


def beside(rows: Verdicts, asked: Sequence[Arm], statistics: StatisticsSpec) -> pa.Table:
    """These scores of one model, from rows of WITH_REPLIES, read an arm or two at a time."""
    resampling = statistics.resamples, statistics.seed
    names = sorted(rows.arms)
    patients = cohort(rows)
    told = [
        confidence_scores(verdicts, requests, completions, *resampling, patients=patients)
        for verdicts, requests, completions in (_parts(rows, [arm]) for arm in names)
    ]
    shuffled = {arm.arm_id for arm in asked if arm.control == "shuffled_options"}
    moved = [arm for arm in names if arm in shuffled]
    of_moved = sorted({name for arm in moved for name in cohort(rows.of_arm(arm, ["patient_id"]))})
    places = [position_scores(*_parts(rows, [arm])[:2], *resampling, patients=of_moved) for arm in moved]
    having = [arm for arm in names if _is_judged(rows, arm)]
    turned = beside_control(judged_arms(asked, having), "reversed_options")
    orders = [
        order_scores(*_parts(rows, pair)[:2], [pair], *resampling, patients=patients)
        for pair in sorted(turned)
    ]
    return tables.concat([*_separation_first(told), *places, *orders], SCORES)


def _parts(rows: Verdicts, arms: Collection[str]) -> tuple[pa.Table, pa.Table, pa.Table]:
    """Verdicts, requests and completions of some arms, with the columns that these scores need."""
    whole = pa.concat_tables(rows.of_arm(arm) for arm in arms)
    verdicts, requests = whole.select(VERDICTS.names), whole.select(["arm_id", "qa_id", "option_keys"])
    return verdicts, requests, whole.select(["request_key", "option_logprobs"])


def _is_judged(rows: Verdicts, arm: str) -> bool:
    return bool(pc.any(pc.equal(rows.of_arm(arm, ["status"])["status"], "judged")).as_py())


def _separation_first(told: Sequence[pa.Table]) -> list[pa.Table]:
    """Scores of arms with how options are told apart in all arms before the curves of all."""
    found = tables.concat(told, SCORES)
    metric = found["metric"]
    apart = pc.or_(pc.starts_with(metric, AUROC), pc.starts_with(metric, AVERAGE_PRECISION))
    return [found.filter(apart), found.filter(pc.invert(apart))]
