"""Usage of a run by model, and the frames that readers chose."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.config.sweep import SweepSpec
from cardiolens.score.verdicts.final_completions import finals
from cardiolens.storage import schemas, tables
from cardiolens.storage.places import Run, Store

_COLUMNS = (
    *("request_key", "status", "written_at"),
    *("prompt_tokens", "cached_tokens", "output_tokens", "seconds"),
)


@dataclass(frozen=True, slots=True)
class Usage:
    """Requests and tokens of one model."""

    model: str
    asked: int  # questions, counted once per arm
    unique: int  # distinct requests planned
    answered: int
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    seconds: float  # summed over requests, which overlap in time
    last_at: datetime | None = None  # when the last of its replies came


def usage_of(
    parts: Sequence[Run], specs: Sequence[SweepSpec], manifests: Sequence[Mapping[str, Any]]
) -> tuple[Usage, ...]:
    """Usage of all models of all runs, one entry per model; its runs are joined, of two stores too."""
    places: dict[str, list[tuple[Run, Path]]] = {}  # with the folder of completions
    for run, spec, manifest in zip(parts, specs, manifests, strict=True):
        for model, facts in manifest["models"].items():
            folder = Store(spec.store).completions(str(facts["model_key"]))
            places.setdefault(model, []).append((run, folder))
    return tuple(_usage(model, of_model) for model, of_model in places.items())


def _usage(model: str, places: Sequence[tuple[Run, Path]]) -> Usage:
    requests = pa.concat_tables(
        tables.read(run.requests(model), schemas.REQUESTS, ["request_key", "status"]) for run, _ in places
    )
    keys = pc.unique(requests.filter(pc.equal(requests["status"], "planned"))["request_key"])
    folders = dict.fromkeys(folder for _, folder in places)
    stored = pa.concat_tables(tables.read(folder, schemas.COMPLETIONS, _COLUMNS) for folder in folders)
    final = finals(stored.filter(pc.is_in(stored["request_key"], value_set=keys)))
    sums = {name: pc.sum(final[name]).as_py() or 0 for name in _COLUMNS[3:]}
    last_at = pc.max(final["written_at"]).as_py()
    return Usage(model, requests.num_rows, len(keys), final.num_rows, last_at=last_at, **sums)


@dataclass(frozen=True, slots=True)
class ChoiceCounts:
    """Counts over the questions of one arm with a reader that requests frames."""

    arm_id: str
    asked: int  # questions
    requests: float  # for frames, mean of a question
    frames: float  # shown with the question, mean over questions reached; NaN without any
    refused: float  # names that were no frame to show, mean of a question
    unanswered: int  # questions without a legal request for frames, or not reached


def choices_of(parts: Sequence[Run], manifests: Sequence[Mapping[str, Any]]) -> tuple[ChoiceCounts, ...]:
    """Counts per arm with a reader that chooses frames; empty if none does."""
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
