"""Scores of a run by the readings of others, beside its own: how much of a ranking is its reader."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.config.sweep import SweepSpec
from cardiolens.protocol.dialogue.chain import SAMPLED
from cardiolens.protocol.replies.peer_readings import PEER_READINGS
from cardiolens.protocol.tasks.legal import letters_of
from cardiolens.score.run_results.aligned_replies import align_completions
from cardiolens.score.run_results.model_replies import OnDisk
from cardiolens.score.statistics.factors import ArmFactors
from cardiolens.score.statistics.headlines import PREFIX, headlines
from cardiolens.score.statistics.scores import score
from cardiolens.score.statistics.statistic import Settings
from cardiolens.score.statistics.verdict_rows import Verdicts
from cardiolens.score.verdicts.final_completions import finals
from cardiolens.score.verdicts.verdicts import judge
from cardiolens.storage.schemas import COMPLETIONS

NAME = "readings of others"
STRICT = "strict"  # the reading of this run, second turns among them
_TIERS = ("tier:1", "tier:3")  # of choice questions


def peer_scores(
    files: Sequence[OnDisk],
    questions: pa.Table,
    own: Verdicts,
    arms: Sequence[ArmFactors],
    spec: SweepSpec,
) -> list[dict[str, object]]:
    """Tier scores and ranks of models (without headlines: of arms) by each reading of the first replies."""
    by_reading: dict[str, Verdicts] = {STRICT: own, **{name: Verdicts() for name in PEER_READINGS}}
    for model in files:
        replies = align_completions(model.requests, model.completions, pa.array([], pa.string()))
        for requests, completions in replies.blocks():
            of_block = questions.filter(pc.is_in(questions["qa_id"], pc.unique(requests["qa_id"])))
            choices = of_block.filter(pc.not_equal(of_block["answer_type"], "report"))
            asked = requests.filter(pc.is_in(requests["qa_id"], choices["qa_id"].combine_chunks()))
            final = finals(completions)
            for name in PEER_READINGS:
                read = judge(asked, _read_by(name, asked, final), choices, spec.dataset.protocol)
                by_reading[name].add(read)
    values = {name: _scores(verdicts, arms, spec) for name, verdicts in by_reading.items()}
    return [*_rows(values)]


def _read_by(name: str, requests: pa.Table, completions: pa.Table) -> pa.Table:
    """Completions whose text is what a reading finds in them, in the form that the prompt asks for."""
    keys = dict(zip(requests["request_key"].to_pylist(), requests["option_keys"].to_pylist(), strict=True))
    columns = completions.select(["request_key", "status", "text", "finish_reason", "written_at"])
    rows = [
        row
        if row["finish_reason"] == SAMPLED  # whose majority counts, as in the run
        else row
        | {"text": _found(name, row["text"] or "", tuple(keys[row["request_key"]])), "finish_reason": "stop"}
        for row in columns.to_pylist()
        if row["request_key"] in keys
    ]
    return pa.Table.from_pylist(
        rows, schema=pa.schema([COMPLETIONS.field(name) for name in columns.column_names])
    )


@lru_cache(maxsize=1 << 16)
def _found(name: str, text: str, option_keys: tuple[str, ...]) -> str:
    letters = PEER_READINGS[name](text, letters_of(option_keys))
    return f"ANSWER: {', '.join(letters)}" if letters else ""


def _scores(verdicts: Verdicts, arms: Sequence[ArmFactors], spec: SweepSpec) -> dict[tuple[str, str], float]:
    """The primary tier scores of models, means as in headlines; without any, of arms without a control."""
    of_models = headlines(arms)
    rows = score(verdicts, arms, Settings(spec.statistics.min_n, 1, 0, swaps=1)).scores.whole().to_pylist()
    names = {f"{PREFIX}{model}": model for model in of_models} or {
        arm.arm_id: arm.arm_id for arm in arms if arm.control == "none"
    }
    return {
        (names[row["arm_id"]], row["scope"]): row["value"]
        for row in rows
        if row["metric"] == "primary" and row["scope"] in _TIERS and row["arm_id"] in names
    }


def _rows(values: Mapping[str, Mapping[tuple[str, str], float]]) -> Iterator[dict[str, object]]:
    """One row per model and tier, with the score and the rank of each reading; the best first."""
    ranks = {name: _ranks(scores) for name, scores in values.items()}
    for model, scope in sorted(values[STRICT], key=lambda key: (key[1], -values[STRICT][key])):
        row: dict[str, object] = {"model": model, "scope": scope}
        for name, scores in values.items():
            row |= {name: scores.get((model, scope)), f"{name}_rank": ranks[name].get((model, scope))}
        yield row


def _ranks(scores: Mapping[tuple[str, str], float]) -> dict[tuple[str, str], int]:
    """The rank of each model on each tier, 1 for the highest score; equal ones share a rank."""
    return {
        (model, scope): 1 + sum(other > value for (_, tier), other in scores.items() if tier == scope)
        for (model, scope), value in scores.items()
        if not math.isnan(value)
    }
