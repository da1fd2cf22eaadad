"""Configuration of the stream, the statistics, the tracker and the page."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from cardiolens.config.base import Positive, Seed, Spec
from cardiolens.config.plugin_words import OURS, PluginMetric, whose


class TrackerSpec(Spec):
    """The tracker that mirrors runs."""

    kind: Literal["wandb", "none"] = "wandb"  # none: nothing is mirrored
    runs: Literal["summary", "models", "arms"] = "models"  # of the tracker: the sweep's; per model; per arm
    project: str = "cardiolens"  # of Weights & Biases
    entity: str | None = None  # Weights & Biases entity; null: your own
    mode: Literal["online", "offline"] = "offline"  # offline: only files in the run's folder


class PageSpec(Spec):
    """The content of a run's page. A page without images may leave the hospital."""

    include_images: bool = False  # include frames for the case viewer


class StreamSpec(Spec):
    """Limits of the stream."""

    studies_in_flight: Positive = 4  # studies in flight per replica
    flush_rows: Positive = 256  # completions are written after this many
    flush_seconds: Annotated[float, Field(gt=0)] = 10.0  # or after this many seconds
    max_attempts: Positive = 3  # attempts per request, over all runs
    engine_restarts: Annotated[int, Field(ge=0)] = 6  # engine restarts per replica and run
    stall_seconds: Annotated[float, Field(gt=0)] = 1800.0  # the run ends after this time without a completion
    load_seconds: Annotated[float, Field(gt=0)] = 14_400.0  # or once an engine has been loading for this time


ReportMetric = Annotated[
    Annotated[Literal["meteor", "bertscore"], Tag(OURS)] | PluginMetric, Discriminator(whose)
]


class StatisticsSpec(Spec):
    """Options of the statistics."""

    min_n: Positive = 5  # subtasks with fewer items are left out of tier means
    resamples: Positive = 2000  # bootstrap resamples of patients per interval
    seed: Seed = 2026  # seed of the resamples
    # metrics of report text, besides ROUGE-L and BLEU-4; package.name: of another package
    report_metrics: tuple[ReportMetric, ...] = ()
    bertscore_model: Path | None = None  # folder of BERTScore's encoder
    bertscore_layer: Annotated[int, Field(ge=0)] | None = None  # encoder layer that BERTScore compares

    @property
    def sampling(self) -> dict[str, int]:
        """Keyword arguments that every statistic takes."""
        return self.model_dump(include={"min_n", "resamples", "seed"})
