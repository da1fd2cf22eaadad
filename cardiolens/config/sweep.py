"""Configuration of a sweep, and the one function that validates it; code past it sees no DictConfig."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, ValidationError, field_validator, model_validator

from cardiolens.config.base import GivenPath, Positive, Seed, Spec, describe
from cardiolens.config.cluster import ClusterSpec, SlurmSpec
from cardiolens.config.dataset import DatasetSpec
from cardiolens.config.model import ModelSpec
from cardiolens.config.steps import PageSpec, StatisticsSpec, StreamSpec, TrackerSpec
from cardiolens.errors import InputError


class SelectorSpec(Spec):
    """One slice selection protocol."""

    name: str
    kind: Literal["random", "clinical", "uniform", "all", "kcenter", "kmedoids", "relevance"]
    seeds: tuple[Seed, ...] = ()  # random: one arm per seed
    pool: Literal["routed", "sequence"] = "routed"  # of every kind but clinical
    lax_small_k: Literal["temporal", "spatial"] = "temporal"  # clinical
    encoder: GivenPath | None = None  # an image encoder, for kcenter, kmedoids and relevance
    order: Literal["presented", "nested"] = "presented"  # nested: smaller budgets first, for a shared prefix

    @model_validator(mode="after")
    def _seeded(self) -> "SelectorSpec":
        if (self.kind == "random") != bool(self.seeds):
            raise ValueError("a random selector needs seeds, e.g. [2026]; every other kind has none")
        if len(set(self.seeds)) != len(self.seeds):
            raise ValueError(f"seeds {list(self.seeds)} name one twice; give each once")
        if self.kind == "relevance" and self.encoder is None:
            raise ValueError("kind relevance needs encoder, the local folder of a CLIP type model")
        if self.encoder is not None and not self.looks_at_pixels:
            raise ValueError(
                f"kind {self.kind} looks at no frames; encoder goes with kcenter, kmedoids, relevance"
            )
        return self

    @property
    def looks_at_pixels(self) -> bool:
        """True if it selects by features of the frames, which must be computed first."""
        return self.kind in ("kcenter", "kmedoids", "relevance")


class PromptSpec(Spec):
    """One prompt style and its token limits."""

    name: str
    style: Literal["standard", "reasoning"]
    max_tokens: Positive
    report_max_tokens: Positive = 2048


class TokenBudget(Spec):
    """A budget of visual tokens of the model that is asked; written tokens:8192."""

    tokens: Positive

    def __str__(self) -> str:
        return f"tokens:{self.tokens}"


Control = Literal["none", "blind", "blank", "other_patient", "shuffled_options", "repeat"]
"""A change to every request that shows what the answers rest on."""

Budget = Positive | TokenBudget
"""The limit of a request: a number of frames, or of visual tokens."""


def _scheduler(cluster: object) -> str:
    if isinstance(cluster, Mapping):
        return str(cluster.get("scheduler", "none"))
    return "slurm" if isinstance(cluster, SlurmSpec) else "none"


Cluster = Annotated[
    Annotated[ClusterSpec, Tag("none")] | Annotated[SlurmSpec, Tag("slurm")], Discriminator(_scheduler)
]
"""The cluster of the stream; with scheduler: slurm a sweep can be submitted."""


class SweepSpec(Spec):
    """A sweep: every model x selector x budget x prompt x control on one dataset."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
    dataset: DatasetSpec
    model: tuple[ModelSpec, ...]
    selector: tuple[SelectorSpec, ...]
    budget: tuple[Budget, ...]
    prompt: tuple[PromptSpec, ...]
    control: tuple[Control, ...] = ("none",)
    caption: Literal["none", "view", "full"] = "view"
    answer_format: Literal["letters", "json", "choice"] = "letters"  # choice: letters by structured decoding
    templates: GivenPath | None = None  # a folder of prompt templates, searched before the packaged ones
    subtask: tuple[str, ...] = ()  # empty: every subtask that has questions
    limit: Positive | None = None
    store: GivenPath
    outputs: GivenPath
    cluster: Cluster = ClusterSpec()
    tracker: TrackerSpec = TrackerSpec()
    stream: StreamSpec = StreamSpec()
    statistics: StatisticsSpec = StatisticsSpec()
    page: PageSpec = PageSpec()
    mode: Literal["run", "plan"] = "run"
    strict: bool = False
    keep_going: bool = False  # run the other models if one cannot run; it is named at the end

    @field_validator("model", "selector", "prompt", mode="before")
    @classmethod
    def _named(cls, value: object) -> object:
        """Move the name of each entry into its options: a config group arrives as {name: options}."""
        if not isinstance(value, Mapping):
            return value
        for name, options in value.items():
            if not isinstance(options, Mapping):
                raise ValueError(f"{name} is {options!r}; expected its options, e.g. {name}: {{...}}")
        return tuple({"name": name, **options} for name, options in value.items())

    @field_validator("subtask", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @field_validator("control", mode="before")
    @classmethod
    def _names(cls, value: object) -> object:
        """Take the names alone: a config group arrives as a mapping, and controls have no options."""
        return tuple(value) if isinstance(value, Mapping) else value

    @field_validator("model", "selector", "budget", "prompt", "control")
    @classmethod
    def _some_and_distinct(cls, value: tuple[Any, ...]) -> tuple[Any, ...]:
        if not value:
            raise ValueError("needs at least one entry")
        if len(set(map(str, value))) != len(value):
            raise ValueError("names an entry twice")
        return value

    @field_validator("budget", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        return tuple(_budget(entry) for entry in (value if isinstance(value, list | tuple) else (value,)))

    @model_validator(mode="after")
    def _countable(self) -> "SweepSpec":
        uncounted = [model for model in self.model if not model.counts_tokens]
        counted = [budget for budget in self.budget if isinstance(budget, TokenBudget)]
        if uncounted and counted:
            reason = "is a simulated reader" if uncounted[0].simulated else "declares no image_tokens"
            raise ValueError(
                f"budget {counted[0]} needs a model whose visual tokens are known, and {uncounted[0].name} "
                f"{reason}; give a number of frames, or leave that model out"
            )
        return self

    @model_validator(mode="after")
    def _bindable(self) -> "SweepSpec":
        unbound = [model.name for model in self.model if model.http and model.http.dialect != "vllm"]
        if unbound and self.answer_format == "choice":
            raise ValueError(
                f"answer_format choice needs structured decoding, which {unbound[0]} is not known to have; "
                "use letters or json, or declare http.dialect: vllm if vLLM serves it"
            )
        return self


def _budget(entry: object) -> object:
    """Parse a budget as written: a number of frames, or tokens:N."""
    unit, _, number = str(entry).rpartition(":")
    if isinstance(entry, Mapping | TokenBudget):
        return entry
    if unit not in ("", "tokens") or not number.isdecimal() or int(number) < 1:
        raise ValueError(
            f"{entry!r} is neither a number of frames (16) nor of visual tokens (tokens:8192), 1 or more"
        )
    return {"tokens": int(number)} if unit else int(number)


def parse(tree: Mapping[str, Any]) -> SweepSpec:
    """Validate a composed configuration; InputError with one clause per wrong field."""
    try:
        return SweepSpec.model_validate(tree)
    except ValidationError as error:
        raise InputError(describe(error)) from None
