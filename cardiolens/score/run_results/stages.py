"""Counts of the stages of chains: what each of them asked, and how that ended."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from cardiolens.protocol.dialogue.chain import Step


@dataclass(frozen=True, slots=True)
class StageCounts:
    """One stage of the chains of a model, as it stands on disk."""

    stage: int  # from 1
    asked: int  # chains that came to it, counted once per arm
    unique: int  # distinct requests; those that chains share count once
    ok: int
    refused: int
    failed: int  # tried, and without an answer


def count_stages(
    steps: Sequence[Step], asked: Mapping[str, int], tried: Collection[str]
) -> tuple[StageCounts, ...]:
    """Counts of every stage that chains have come to.

    `asked`: rows of the plan by the key of a chain; `tried`: keys of requests with any completion.
    """
    return tuple(
        _counts(number + 1, [step for step in steps if step.stage == number], asked, tried)
        for number in sorted({step.stage for step in steps})
    )


def _counts(
    number: int, steps: Sequence[Step], asked: Mapping[str, int], tried: Collection[str]
) -> StageCounts:
    said = {step.request_key: step.completion for step in steps}
    statuses = [row["status"] for row in said.values() if row is not None]
    return StageCounts(
        stage=number,
        asked=sum(asked[step.chain] for step in steps),
        unique=len(said),
        ok=statuses.count("ok"),
        refused=statuses.count("refused"),
        failed=sum(row is None and key in tried for key, row in said.items()),
    )
