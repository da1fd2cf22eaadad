"""Readers that choose their frames: requests, frames and refusals per arm."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.storage import schemas, tables
from cardiolens.storage.places import Run


@dataclass(frozen=True, slots=True)
class ChoiceCounts:
    """Counts over the questions of one arm whose reader requested frames."""

    arm_id: str
    asked: int  # questions
    requests: float  # for frames, mean of a question
    frames: float  # shown with the question, mean over questions reached; NaN without any
    refused: float  # names that were no frame to show, mean of a question
    unanswered: int  # questions without a legal request for frames, or not reached


def choices_of(parts: Sequence[Run], manifests: Sequence[Mapping[str, Any]]) -> tuple[ChoiceCounts, ...]:
    """Counts per arm whose reader chooses frames; empty if none does."""
    by_arm: dict[str, list[_Question]] = {}
    for run, manifest in zip(parts, manifests, strict=True):
        questions = _questions(run)
        for model in manifest["models"] if questions else ():
            requests = tables.read(run.requests(model), schemas.REQUESTS, ["arm_id", "request_key"])
            chains = requests.filter(pc.is_in(requests["request_key"], value_set=pa.array(list(questions))))
            for row in chains.to_pylist():
                by_arm.setdefault(row["arm_id"], []).append(questions[row["request_key"]])
    return tuple(_counts(arm_id, questions) for arm_id, questions in by_arm.items())


@dataclass(slots=True)
class _Question:
    """One chain: its requests for frames, the names refused in them, and the frames beside the question."""

    requests: int = 0
    refused: int = 0
    frames: int | None = None


def _questions(run: Run) -> dict[str, _Question]:
    """The chains of a run that request frames, by request_key."""
    stages = tables.read(run.seen, schemas.SEEN, ["request_key", "frames", "not_shown", "status"])
    questions: dict[str, _Question] = {}
    for row in stages.to_pylist():
        if row["frames"] is None:  # a chain whose frames the plan knew
            continue
        question = questions.setdefault(row["request_key"], _Question())
        if row["not_shown"] is not None:
            question.requests += 1
            question.refused += row["not_shown"]
        elif row["status"] is not None:
            question.frames = len(row["frames"])
    return questions


def _counts(arm_id: str, questions: Sequence[_Question]) -> ChoiceCounts:
    frames = [question.frames for question in questions if question.frames is not None]
    return ChoiceCounts(
        arm_id=arm_id,
        asked=len(questions),
        requests=fmean(question.requests for question in questions),
        frames=fmean(frames) if frames else float("nan"),
        refused=fmean(question.refused for question in questions),
        unanswered=len(questions) - len(frames),
    )
