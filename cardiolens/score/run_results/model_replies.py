"""Judge one model of a run: its completions → verdicts, extra scores, transcripts and counts."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.config.sweep import SweepSpec
from cardiolens.config.sweep_factors import arms, arms_asking_back
from cardiolens.protocol.dialogue.chain_tables import Step, read_chains, seen_table, walk
from cardiolens.score.run_results.reply_scores import WITH_REPLIES, add_reply_columns, scores_from_replies
from cardiolens.score.run_results.second_turns import SecondTurns
from cardiolens.score.run_results.stored_replies import align_completions, of_keys
from cardiolens.score.statistics.verdict_rows import Verdicts
from cardiolens.score.verdicts.final_completions import finals
from cardiolens.score.verdicts.text_metrics import TextMetric
from cardiolens.score.verdicts.verdicts import judge


@dataclass(frozen=True, slots=True)
class StageCounts:
    """One stage of a model's chains, counted from the files on disk."""

    stage: int  # from 1
    asked: int  # chains that came to it, counted once per arm
    unique: int  # distinct requests; those that chains share count once
    ok: int
    refused: int
    failed: int  # tried, and without an answer


@dataclass(frozen=True, slots=True)
class ModelReplies:
    """The verdicts of one model, and its distinct planned requests counted by outcome."""

    verdicts: Verdicts  # which may have more columns
    reply_scores: pa.Table  # scores that need requests or completions as well
    seen: pa.Table  # transcripts of chains
    counts: Mapping[str, int]
    stages: tuple[StageCounts, ...]


def judge_model(
    requests: Path,
    completions: Path,
    questions: pa.Table,
    spec: SweepSpec,
    metrics: Sequence[TextMetric],
) -> ModelReplies:
    """Judge a model's replies, one block of studies at a time.

    Chains are an exception: all of them are walked at once, with the replies to their stages in memory.
    """
    chains = read_chains(requests)
    steps = walk(chains, completions)
    replies = align_completions(requests, completions)
    of_steps = of_keys(replies.others, pa.array(sorted({step.request_key for step in steps}), pa.string()))
    rows = Verdicts(WITH_REPLIES)
    turns = SecondTurns(arms_asking_back(spec), replies.others, spec.dataset.protocol)
    of_chains = pa.array(list(chains), pa.string())
    times_asked: Counter[str] = Counter()  # rows of the plan, by the key of their chain
    for block, of_block in replies.blocks():
        key = block["request_key"]
        times_asked.update(key.filter(pc.is_in(key, of_chains)).to_pylist())
        of_questions = questions.filter(pc.is_in(questions["qa_id"], pc.unique(block["qa_id"])))
        verdicts = judge(block, of_block, of_questions, spec.dataset.protocol, metrics)
        final = finals(of_block)
        rows.add(turns.read(add_reply_columns(verdicts, block, final), block, final, of_questions))
    counts = Counter(replies.counts)
    counts.update({f"second_{name}": number for name, number in turns.counts.items()})
    counts["unrequested"] = replies.others.num_rows - of_steps.num_rows - turns.n_completions
    return ModelReplies(
        verdicts=rows,
        reply_scores=scores_from_replies(rows, arms(spec), spec.statistics),
        seen=pa.concat_tables([seen_table(chains, steps), turns.seen]),
        counts=counts,
        stages=_stages(steps, times_asked, {*of_steps["request_key"].to_pylist()}),
    )


def _stages(
    steps: Sequence[Step], times_asked: Mapping[str, int], attempted: Collection[str]
) -> tuple[StageCounts, ...]:
    """Count every stage that at least one chain has reached.

    `times_asked`: rows of the plan by chain key; `attempted`: request keys with any completion.
    """
    counts = []
    for number in sorted({step.stage for step in steps}):
        of_stage = [step for step in steps if step.stage == number]
        completions = {step.request_key: step.completion for step in of_stage}
        statuses = [row["status"] for row in completions.values() if row is not None]
        counts.append(
            StageCounts(
                stage=number + 1,
                asked=sum(times_asked[step.chain] for step in of_stage),
                unique=len(completions),
                ok=statuses.count("ok"),
                refused=statuses.count("refused"),
                failed=sum(row is None and key in attempted for key, row in completions.items()),
            )
        )
    return tuple(counts)
