"""Configuration of execution, scoring and mirroring."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from cardiolens.config.base import Positive, Seed, Spec


class TrackerSpec(Spec):
    """The tracker that mirrors runs."""

    kind: Literal["wandb", "none"] = "wandb"
    project: str = "cardiolens"
    entity: str | None = None
    mode: Literal["online", "offline"] = "offline"


class PageSpec(Spec):
    """Contents of the page of a run, which may leave the hospital."""

    include_images: bool = False  # frames, for the case viewer


class StreamSpec(Spec):
    """Bounds of the stream."""

    studies_in_flight: Positive = 4  # rows an engine works on at once
    flush_rows: Positive = 256
    flush_seconds: Annotated[float, Field(gt=0)] = 10.0
    max_attempts: Positive = 3  # tries of one request over all runs
    engine_restarts: Annotated[int, Field(ge=0)] = 3  # of one replica in one run
    stall_seconds: Annotated[float, Field(gt=0)] = 1800.0  # no completion for so long ends the run


class StatisticsSpec(Spec):
    """Options of scores and intervals."""

    min_n: Positive = 5  # subtasks with fewer items stay out of tier means
    resamples: Positive = 2000
    seed: Seed = 2026
    report_metrics: tuple[Literal["meteor", "bertscore"], ...] = ()  # of report text, beside the shipped
    bertscore_model: Path | None = None  # folder of an encoder
    bertscore_layer: Annotated[int, Field(ge=0)] | None = None  # of it that is compared

    @property
    def sampling(self) -> dict[str, int]:
        """Arguments that every statistic takes."""
        return self.model_dump(include={"min_n", "resamples", "seed"})
