"""The sweep's configuration as frozen, validated values; no code after `parse` sees a DictConfig."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, ValidationError, field_validator

from cardiolens.base.errors import InputError
from cardiolens.config.base import GivenPath, Positive, Seed, Spec, describe
from cardiolens.config.cluster import ClusterSpec, SlurmSpec
from cardiolens.config.combinations import clashes
from cardiolens.config.dataset import DatasetSpec
from cardiolens.config.model import ModelSpec
from cardiolens.config.plugins import BUILT_IN, PluginMetric, part_of
from cardiolens.config.sweep_factors import (
    AnyControl,
    Budget,
    Primary,
    PrimaryQuestionSpec,
    PromptSpec,
    SelectorSpec,
    Wording,
)


class TrackerSpec(Spec):
    """The tracker that mirrors runs."""

    # of Weights & Biases; offline: only files in the run's folder; none: nothing is mirrored
    mode: Literal["online", "offline", "none"] = "offline"


class PageSpec(Spec):
    """The content of a run's page. A page without images may leave the hospital."""

    include_images: bool = False  # include frames for the case viewer


class StreamSpec(Spec):
    """Limits of the stream."""

    flush_rows: Positive = 256  # completions are written after this many
    flush_seconds: Annotated[float, Field(gt=0)] = 10.0  # or after this many seconds
    max_attempts: Positive = 3  # attempts per request, over all runs
    # the run ends after this time without a completion; of a model that loads, after nine times as long
    stall_seconds: Annotated[float, Field(gt=0)] = 1800.0


ReportMetric = Annotated[
    Annotated[Literal["meteor", "bertscore"], Tag(BUILT_IN)] | PluginMetric, Discriminator(part_of)
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


def _scheduler(cluster: Any) -> str:
    names = cluster.keys() if isinstance(cluster, Mapping) else type(cluster).model_fields.keys()
    return "<slurm>" if names & (SlurmSpec.model_fields.keys() - ClusterSpec.model_fields.keys()) else "<ray>"


Cluster = Annotated[
    Annotated[ClusterSpec, Tag("<ray>")] | Annotated[SlurmSpec, Tag("<slurm>")], Discriminator(_scheduler)
]
"""The cluster that runs the stream; with an option of SlurmSpec, sweeps can be submitted."""


class SweepSpec(Spec):
    """A sweep: every model x selector x budget x prompt x wording x control on one dataset."""

    # name of the run's folder, before its digest
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
    dataset: DatasetSpec  # one of conf/dataset
    model: tuple[ModelSpec, ...]  # names in conf/model
    selector: tuple[SelectorSpec, ...]  # names in conf/selector
    budget: tuple[Budget, ...]  # frames per request at most, or tokens:8192
    prompt: tuple[PromptSpec, ...]  # names in conf/prompt
    control: tuple[AnyControl, ...] = ("none",)  # names in conf/control
    wording: tuple[Wording, ...] = (0,)  # 0: the original question; 1, 2, ...: the protocol's other wordings
    caption: Literal["none", "view", "full"] = "view"  # text beside each frame
    answer_format: Literal["letters", "json", "choice"] = "letters"  # choice: letters by structured decoding
    templates: GivenPath | None = None  # a folder of prompt templates, searched before the packaged ones
    subtask: tuple[str, ...] = ()  # empty: every subtask that has questions
    item: tuple[str, ...] = ()  # qa_ids of the questions to ask; empty: all of `subtask`
    limit: Positive | None = None  # number of studies to use, in order of their ids; null: all
    store: GivenPath  # folder of shards, questions and completions, shared by sweeps on one dataset
    outputs: GivenPath  # folder of all runs
    cluster: Cluster = ClusterSpec()  # one of conf/cluster
    tracker: TrackerSpec = TrackerSpec()  # one of conf/tracker
    stream: StreamSpec = StreamSpec()  # limits while engines run
    statistics: StatisticsSpec = StatisticsSpec()  # options of the statistics
    page: PageSpec = PageSpec()  # content of the page
    mode: Literal["run", "plan"] = "run"  # plan: print the planned requests, and send none
    primary: Primary | None = None  # the one preregistered comparison of the run
    keep_going: bool = False  # true: a model that cannot run is reported at the end; the others run

    @property
    def compared(self) -> tuple[str, ...]:
        """The models of what is declared: two, or for a question all that are no simulated readers."""
        if isinstance(self.primary, PrimaryQuestionSpec):
            return tuple(model.name for model in self.model if not model.simulated)
        return () if self.primary is None else (self.primary.model, self.primary.versus)

    @field_validator("model", "selector", "prompt", mode="before")
    @classmethod
    def _named(cls, value: object) -> object:
        """Add the name to each entry of a config group, which arrives as {name: options}."""
        if not isinstance(value, Mapping):
            return value
        for name, options in value.items():
            if not isinstance(options, Mapping):
                raise ValueError(f"{name} is {options!r}; expected its options, e.g. {name}: {{...}}")
        return tuple({"name": name, **options} for name, options in value.items())

    @field_validator("budget", "control", "wording", "subtask", "item", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        """Return a single entry, or the names of a config group without options, as a list."""
        if isinstance(value, list | tuple):
            return value
        return tuple(value) if isinstance(value, Mapping) else (value,)

    @field_validator("model", "selector", "budget", "prompt", "control", "wording")
    @classmethod
    def _some_and_distinct(cls, value: tuple[Any, ...]) -> tuple[Any, ...]:
        if not value:
            raise ValueError("needs at least one entry")
        if len(set(map(str, value))) != len(value):
            raise ValueError("names an entry twice")
        return value

    def _problems(self) -> Iterator[str]:
        return clashes(self)


def parse(tree: Mapping[str, Any]) -> SweepSpec:
    """Validate a composed configuration as a SweepSpec; InputError describes each wrong field."""
    try:
        return SweepSpec.model_validate(tree)
    except ValidationError as error:
        raise InputError(describe(error)) from None
