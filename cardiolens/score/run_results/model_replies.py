"""Judge one model of a run: its completions → verdicts, transcripts and counts."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.config.sweep import SweepSpec
from cardiolens.config.sweep_factors import arms_asking_back
from cardiolens.protocol.dialogue.chain_tables import Step, read_chains, seen_table, walk
from cardiolens.score.run_results.second_turns import SecondTurns
from cardiolens.score.run_results.stored_replies import align_completions, item_of, of_keys
from cardiolens.score.statistics.verdict_rows import Verdicts
from cardiolens.score.verdicts.final_completions import finals
from cardiolens.score.verdicts.text_metrics import TextMetric
from cardiolens.score.verdicts.verdicts import judge
from cardiolens.storage import tables
from cardiolens.storage.schemas import COMPLETIONS, REQUESTS, SEEN, VERDICTS

# Verdicts, the options as displayed, and the log-probabilities that the engine returned.
WITH_REPLIES = pa.schema(
    [*VERDICTS, REQUESTS.field("option_keys"), COMPLETIONS.field("option_logprobs")], VERDICTS.metadata
)


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
class Replies:
    """The verdicts of a model, a run or several, and their distinct planned requests counted by outcome."""

    verdict_store: Verdicts  # with the columns of WITH_REPLIES
    seen: pa.Table  # transcripts of chains
    counts: Mapping[str, int]  # ok, refused, engine_error, missing; completions beyond: agreeing, ...
    questions_digest: str
    stages: Mapping[str, tuple[StageCounts, ...]] = field(default_factory=dict)  # of chains, by model

    @staticmethod
    def together(models: Iterable["Replies"], questions_digest: str) -> "Replies":
        """Join the replies of several models."""
        verdicts, counts, seen = Verdicts(WITH_REPLIES), Counter[str](), []
        stages: dict[str, tuple[StageCounts, ...]] = {}
        for of_model in models:
            verdicts.extend(of_model.verdict_store)
            counts.update(of_model.counts)
            stages |= of_model.stages
            seen.append(of_model.seen)
        return Replies(verdicts, tables.concat(seen, SEEN), counts, questions_digest, stages)

    @property
    def verdicts(self) -> pa.Table:
        """Load all verdicts into memory."""
        return self.verdict_store.whole()

    @property
    def unfinished(self) -> int:
        return self.counts["engine_error"] + self.counts["missing"]

    @property
    def not_asked_back(self) -> int:
        """Replies that could not be read, without a final completion of their second turn."""
        return self.counts.get("second_open", 0)

    @property
    def duplicates(self) -> dict[str, int]:
        """Surplus final completions, by whether they agree with the one that counts."""
        return {name: self.counts[name] for name in ("agreeing", "disagreeing")}

    @property
    def unrequested(self) -> int:
        """Completions in the store that match no request of this run; they are ignored."""
        return self.counts["unrequested"]


def judge_model(
    model: str,
    requests: Path,
    completions: Path,
    questions: pa.Table,
    spec: SweepSpec,
    *,
    metrics: Sequence[TextMetric],
) -> Replies:
    """Judge a model's replies, one block of studies at a time.

    Chains are an exception: all of them are walked at once, with the replies to their stages in memory.
    """
    chains = read_chains(requests)
    steps = walk(chains, completions)
    replies = align_completions(requests, completions)
    of_steps = of_keys(replies.others, pa.array({step.request_key for step in steps}, pa.string()))
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
        rows.add(turns.read(_with_replies(verdicts, block, final), block, final, of_questions))
    counts = Counter(replies.counts)
    counts.update({f"second_{name}": number for name, number in turns.counts.items()})
    counts["unrequested"] = replies.others.num_rows - of_steps.num_rows - turns.n_completions
    return Replies(
        verdict_store=rows,
        seen=pa.concat_tables([seen_table(chains, steps), turns.seen]),
        counts=counts,
        questions_digest="",
        stages={model: _stages(steps, times_asked, {*of_steps["request_key"].to_pylist()})},
    )


def _with_replies(verdicts: pa.Table, requests: pa.Table, completions: pa.Table) -> pa.Table:
    """Append the columns of requests and final completions that scores need to verdicts."""
    of_request = pc.index_in(item_of(verdicts), value_set=item_of(requests).combine_chunks())
    keys = completions["request_key"].combine_chunks()
    of_completion = pc.index_in(verdicts["request_key"], value_set=keys)
    option_keys = requests["option_keys"].take(of_request)
    logprobs = completions["option_logprobs"].take(of_completion)
    return verdicts.append_column("option_keys", option_keys).append_column("option_logprobs", logprobs)


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
