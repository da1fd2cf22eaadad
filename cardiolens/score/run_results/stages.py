"""Requests of each chain stage, counted by outcome."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from cardiolens.protocol.dialogue.chain_tables import Step


@dataclass(frozen=True, slots=True)
class StageCounts:
    """One stage of a model's chains, counted from the files on disk."""

    stage: int  # from 1
    asked: int  # chains that came to it, counted once per arm
    unique: int  # distinct requests; those that chains share count once
    ok: int
    refused: int
    failed: int  # tried, and without an answer


def count_stages(
    steps: Sequence[Step], times_asked: Mapping[str, int], attempted: Collection[str]
) -> tuple[StageCounts, ...]:
    """Count every stage that at least one chain has reached.

    `times_asked`: rows of the plan by chain key; `attempted`: request keys with any completion.
    """
    return tuple(
        _counts(number + 1, [step for step in steps if step.stage == number], times_asked, attempted)
        for number in sorted({step.stage for step in steps})
    )


def _counts(
    number: int, steps: Sequence[Step], times_asked: Mapping[str, int], attempted: Collection[str]
) -> StageCounts:
    completions = {step.request_key: step.completion for step in steps}
    statuses = [row["status"] for row in completions.values() if row is not None]
    return StageCounts(
        stage=number,
        asked=sum(times_asked[step.chain] for step in steps),
        unique=len(completions),
        ok=statuses.count("ok"),
        refused=statuses.count("refused"),
        failed=sum(row is None and key in attempted for key, row in completions.items()),
    )
