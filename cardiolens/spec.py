"""The one door from Hydra to frozen, validated values; nothing past it sees a DictConfig."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from cardiolens.errors import InputError
from cardiolens.http_spec import HttpSpec

Positive = Annotated[int, Field(gt=0)]
Seed = Annotated[int, Field(ge=0)]


class Spec(BaseModel):
    """A frozen piece of configuration; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


class PhantomSpec(Spec):
    """A synthetic cohort: which studies, how large, how hard."""

    seed: Seed = 2026
    n_sampled: Annotated[int, Field(ge=0)] = 0  # studies drawn around the canonical ones
    canonical: tuple[str, ...] = ()  # names of canonical studies to include, e.g. PH-NORMAL
    size: Literal["default", "ci"] = "ci"
    difficulty: Literal["easy", "standard", "hard"] = "standard"
    masks: bool = False


class DatasetSpec(Spec):
    """A cohort: a folder of studies and a file of questions."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
    studies: Path
    questions: Path
    protocol: str = "openprotocol-1"
    window_pct: tuple[float, float] = (1.0, 99.0)  # intensity percentiles shown as black and white
    phantom: PhantomSpec | None = None  # made first, where `studies` does not exist

    @field_validator("window_pct")
    @classmethod
    def _ordered(cls, value: tuple[float, float]) -> tuple[float, float]:
        if not 0 <= value[0] < value[1] <= 100:
            raise ValueError("must be two percentiles, low below high, both within 0..100")
        return value


class Sampling(Spec):
    """How tokens are drawn. Answers are shared between arms only where they are determined."""

    temperature: Annotated[float, Field(ge=0)] = 0.0
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    seed: Seed | None = None

    @property
    def determined(self) -> bool:
        return self.temperature == 0 or self.seed is not None


Engine = Literal[
    "vllm",
    "http",
    "oracle",  # and all below: simulated readers
    "uniform",
    "prevalence",
    "constant",
    "noisy",
    "collapse",
    "conservative",
    "budget_effect",
]


class ModelSpec(Spec):
    """One model and how it is served."""

    name: str
    engine: Engine = "vllm"
    source: str = ""  # embedded | a local folder | a hub id; http: of the processor that counts tokens
    revision: str | None = None  # http: as declared, e.g. a commit, a snapshot's name or a date
    dtype: Literal["auto", "bfloat16", "float16", "float32"] = "bfloat16"
    quantization: str | None = None
    max_model_len: Positive = 8192
    max_num_seqs: Positive = 128
    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1)] = 0.9
    kv_cache_gib: Annotated[float, Field(gt=0)] | None = None  # CPU only
    tensor_parallel: Positive = 1
    replicas: Positive = 1
    image_tokens: Positive | None = None  # http: of a frame, as declared, where no processor counts
    long_side: Positive = 448  # frames are resized so that their longer side has so many pixels
    max_tokens: Mapping[str, Positive] = {}  # by prompt name, or 'report'; overrides the prompt's
    sampling: Sampling = Sampling()
    options: Mapping[str, float | int | str] = {}  # of a simulated reader
    http: HttpSpec | None = None  # where it is served, with engine: http

    @property
    def simulated(self) -> bool:
        """Whether it stands for a model and sees no frame."""
        return self.engine not in ("vllm", "http")

    @property
    def answers_from(self) -> Literal["images", "truth", "options"]:
        """What the engine looks at: frames, the questions' answers, or the options alone."""
        if not self.simulated:
            return "images"
        return "options" if self.engine in ("uniform", "constant") else "truth"

    @property
    def determined(self) -> bool:
        """Whether the same request is meant to have the same answer, so that arms may share it."""
        return self.sampling.determined and (self.http is None or self.http.sends_sampling)

    @property
    def counts_tokens(self) -> bool:
        """Whether prompts can be measured before they are sent, exactly or by declared image tokens."""
        return not self.simulated and bool(self.source or self.image_tokens)

    @property
    def served(self) -> HttpSpec:
        """Where a model with engine: http is served."""
        assert self.http is not None, "checked when the configuration was read"
        return self.http

    @model_validator(mode="after")
    def _sourced(self) -> "ModelSpec":
        if self.engine == "vllm" and not self.source:
            raise ValueError("a vllm model needs source: a hub id, a local folder or 'embedded'")
        if (self.engine == "http") != (self.http is not None):
            raise ValueError(
                "engine: http needs http: with base_url and api_model, and no other engine has it"
            )
        if self.engine == "http" and not self.revision:
            raise ValueError(
                "an http model needs revision: what is known of its version, e.g. the commit that is served, "
                "a dated snapshot's name, or the date of asking"
            )
        if self.engine == "http" and self.replicas > 1:
            raise ValueError("an http model has one replica; raise http.max_in_flight to ask more at once")
        return self


class SelectorSpec(Spec):
    """One slice selection protocol."""

    name: str
    kind: Literal["random", "clinical", "uniform", "all", "kcenter", "kmedoids", "relevance"]
    seeds: tuple[Seed, ...] = ()  # random: one arm a seed
    pool: Literal["routed", "sequence"] = "routed"  # of every kind but clinical
    lax_small_k: Literal["temporal", "spatial"] = "temporal"  # clinical
    encoder: Path | None = None  # folder of an image encoder that sees for kcenter, kmedoids and relevance
    order: Literal["presented", "nested"] = "presented"  # nested: smaller budgets first, a shared prefix

    @model_validator(mode="after")
    def _seeded(self) -> "SelectorSpec":
        if (self.kind == "random") != bool(self.seeds):
            raise ValueError("a random selector needs seeds, e.g. [2026]; every other kind has none")
        if self.kind == "relevance" and self.encoder is None:
            raise ValueError("kind relevance needs encoder, the local folder of a CLIP type model")
        if self.encoder is not None and not self.looks_at_pixels:
            raise ValueError(
                f"kind {self.kind} looks at no frames; encoder goes with kcenter, kmedoids, relevance"
            )
        return self

    @property
    def looks_at_pixels(self) -> bool:
        """Whether it chooses by features of the frames, which must be computed first."""
        return self.kind in ("kcenter", "kmedoids", "relevance")


class PromptSpec(Spec):
    """One way to ask."""

    name: str
    style: Literal["standard", "reasoning"]
    max_tokens: Positive
    report_max_tokens: Positive = 2048


class TokenBudget(Spec):
    """As many frames as fit into so many visual tokens of the model that is asked; written tokens:8192."""

    tokens: Positive

    def __str__(self) -> str:
        return f"tokens:{self.tokens}"


Control = Literal["none", "blind", "blank", "other_patient", "shuffled_options", "repeat"]
"""What is changed of every request, to see what the answers rest on."""


Budget = Positive | TokenBudget
"""How much a request may show: a number of frames, or of visual tokens."""


class TrackerSpec(Spec):
    """Where runs are mirrored."""

    kind: Literal["wandb", "none"] = "wandb"
    project: str = "cardiolens"
    entity: str | None = None
    mode: Literal["online", "offline"] = "offline"


class ClusterSpec(Spec):
    """The Ray cluster that runs the stream."""

    address: str | None = None  # None: start one on this machine
    object_store_gib: Annotated[float, Field(gt=0)] = 1.0


class StreamSpec(Spec):
    """Bounds of the stream."""

    studies_in_flight: Positive = 4  # rows an engine works on at once
    flush_rows: Positive = 256
    flush_seconds: Annotated[float, Field(gt=0)] = 10.0
    max_attempts: Positive = 3  # tries of one request over all runs
    engine_restarts: Annotated[int, Field(ge=0)] = 3  # of one replica in one run
    stall_seconds: Annotated[float, Field(gt=0)] = 1800.0  # no completion for so long ends the run


class StatisticsSpec(Spec):
    """How scores are made."""

    min_n: Positive = 5  # subtasks with fewer items stay out of tier means
    resamples: Positive = 2000
    seed: Seed = 2026


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
    templates: Path | None = None  # a folder of prompt templates, searched before the packaged ones
    subtask: tuple[str, ...] = ()  # empty: every subtask that has questions
    limit: Positive | None = None
    store: Path
    outputs: Path
    cluster: ClusterSpec = ClusterSpec()
    tracker: TrackerSpec = TrackerSpec()
    stream: StreamSpec = StreamSpec()
    statistics: StatisticsSpec = StatisticsSpec()
    mode: Literal["run", "plan"] = "run"
    strict: bool = False

    @field_validator("model", "selector", "prompt", mode="before")
    @classmethod
    def _named(cls, value: object) -> object:
        """A config group arrives as {name: options}; each entry learns its name."""
        if isinstance(value, Mapping):
            return tuple({"name": name, **options} for name, options in value.items())
        return value

    @field_validator("control", mode="before")
    @classmethod
    def _names(cls, value: object) -> object:
        """Controls have a name and no options; a config group arrives as a mapping."""
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
            why = "is a simulated reader" if uncounted[0].simulated else "declares no image_tokens"
            raise ValueError(
                f"budget {counted[0]} needs a model whose visual tokens are known, and {uncounted[0].name} "
                f"{why}; give a number of frames, or leave that model out"
            )
        return self

    @model_validator(mode="after")
    def _bindable(self) -> "SweepSpec":
        free = [model.name for model in self.model if model.http and model.http.dialect != "vllm"]
        if free and self.answer_format == "choice":
            raise ValueError(
                f"answer_format choice needs structured decoding, which {free[0]} is not known to have; "
                "use letters or json, or declare http.dialect: vllm if vLLM serves it"
            )
        return self


def _budget(entry: object) -> object:
    """A budget as written: a number of frames, or tokens:N."""
    unit, _, number = str(entry).rpartition(":")
    if isinstance(entry, Mapping | TokenBudget):
        return entry
    if unit not in ("", "tokens") or not number.isdecimal() or int(number) < 1:
        raise ValueError(
            f"{entry!r} is neither a number of frames (16) nor of visual tokens (tokens:8192), 1 or more"
        )
    return {"tokens": int(number)} if unit else int(number)


def parse(tree: Mapping[str, Any]) -> SweepSpec:
    """A composed configuration as a SweepSpec; what is wrong is said in one line a field."""
    try:
        return SweepSpec.model_validate(tree)
    except ValidationError as error:
        raise InputError(describe(error)) from None


_SAID = 5  # errors that one message names


def describe(error: ValidationError) -> str:
    """A validation error in the words of the configuration file; the first few where there are many."""
    lines = []
    found = error.errors(include_url=False)
    for item in found[:_SAID]:
        where = ".".join(map(str, item["loc"]))
        shown = (
            not isinstance(item["input"], dict | BaseModel) and "key" not in where
        )  # a key is not repeated
        given = f", got {item['input']!r}" if shown else ""
        said = f"{item['msg'].removeprefix('Value error, ')}{given}"
        lines.append(f"{where}: {said}" if where else said)
    more = [f"and {len(found) - _SAID} more"] if len(found) > _SAID else []
    return "; ".join(lines + more)
