"""Configuration of the stream, the statistics, the tracker and the page."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from cardiolens.config.base import Positive, Seed, Spec


class TrackerSpec(Spec):
    """The tracker to which runs are mirrored."""

    kind: Literal["wandb", "none"] = "wandb"  # none: nothing is mirrored
    project: str = "cardiolens"  # of Weights & Biases
    entity: str | None = None  # of Weights & Biases; null: your own
    mode: Literal["online", "offline"] = "offline"  # offline: files only, sent by wandb sync


class PageSpec(Spec):
    """The content of the page of a run. A page without images may leave the hospital."""

    include_images: bool = False  # frames, for the case viewer


class StreamSpec(Spec):
    """Limits of the stream."""

    studies_in_flight: Positive = 4  # of one replica
    flush_rows: Positive = 256  # completions are written after so many
    flush_seconds: Annotated[float, Field(gt=0)] = 10.0  # or after so many seconds
    max_attempts: Positive = 3  # of one request, over all runs
    engine_restarts: Annotated[int, Field(ge=0)] = 3  # of one replica in one run
    stall_seconds: Annotated[float, Field(gt=0)] = 1800.0  # without a completion, after which the run ends


class StatisticsSpec(Spec):
    """Options of the statistics."""

    min_n: Positive = 5  # subtasks with fewer items stay out of tier means
    resamples: Positive = 2000  # of patients, for an interval
    seed: Seed = 2026  # of the resamples
    report_metrics: tuple[
        Literal["meteor", "bertscore"], ...
    ] = ()  # of report text, besides ROUGE-L and BLEU-4
    bertscore_model: Path | None = None  # folder of the encoder
    bertscore_layer: Annotated[int, Field(ge=0)] | None = None  # the layer of the encoder that is compared

    components: bool = False  # of variance, by a mixed model: minutes for a large run

    @property
    def sampling(self) -> dict[str, int]:
        """Arguments of every statistic."""
        return self.model_dump(include={"min_n", "resamples", "seed"})
