"""Configuration of one model: its source, how it is served, how it answers."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, JsonValue, field_validator, model_validator

from cardiolens.config.base import Auto, Gib, Positive, Seed, Spec
from cardiolens.config.engine_options import check_names
from cardiolens.config.http import HttpSpec


class Sampling(Spec):
    """Sampling parameters. Arms share a completion only if sampling is deterministic."""

    temperature: Annotated[float, Field(ge=0)] = 0.0  # 0: the most likely token
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0  # share of probability that is drawn from
    seed: Seed | None = None  # null: the engine's own

    @property
    def determined(self) -> bool:
        """True if the same request yields the same answer: greedy decoding, or a seed."""
        return self.temperature == 0 or self.seed is not None


SERVING = (
    "replicas",
    "tensor_parallel",
    "fraction",
    "gpu_memory_utilization",
    "kv_cache_gib",
    "max_num_seqs",
    "weight_gib",
    "parameters",
    "attention_heads",
    "card",
)
"""Fields that say how a model is served or describe it; they change no request and no answer."""

EngineName = Literal[
    "vllm",
    "http",
    "person",  # who read on the page of cardiolens.review; source: the file of their readings
    "oracle",  # and all below: simulated readers
    "uniform",
    "prevalence",
    "constant",
    "noisy",
    "collapse",
    "conservative",
    "budget_effect",
]

Text = Annotated[str, Field(min_length=1)]


class ModelCard(Spec):
    """A catalogue entry; nothing in it changes what a sweep asks."""

    architecture: str | None = None  # as the pinned vLLM registers it; None: closed
    field: Literal["general", "medical"]  # what it was made for
    licence: Text  # of the weights
    precision_of: str | None = None  # the entry of the same model with weights of more bits
    context: Positive | None  # tokens, as published
    thinking: Literal["never", "always", "off", "on"]  # off, on: set by `template_options`
    image_rule: Text  # the computation of `image_tokens`
    template: str = ""  # notes on its chat template
    tensor_parallel: Mapping[Positive, Positive] = {}  # by GiB of a GPU: the size of auto on a node of eight
    verified: Literal["engine", "processor", "config", "none"]  # how far this project checked the entry
    note: Text  # the source of each fact


class ModelSpec(Spec):
    """One model: its files or server, its serving options and its limits."""

    name: str  # the name of its file
    engine: EngineName = "vllm"  # what answers; below person: simulated readers
    source: str = ""  # embedded | packaged/name | folder | hub id; http: its processor; person: the file
    revision: str | None = None  # http: as declared, e.g. a commit, a snapshot's name or a date
    dtype: Literal["auto", "bfloat16", "float16", "float32"] = "bfloat16"  # of weights and computation
    quantization: str | None = None  # as vLLM calls it
    load_format: Literal["auto", "dummy"] = "auto"  # dummy: random weights, to measure speed
    max_model_len: Positive = 8192  # prompt and reply, tokens
    max_num_seqs: Positive = 128  # requests at once in one engine
    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1)] = 0.9  # share of a GPU that vLLM takes
    kv_cache_gib: Gib | None = None  # CPU only
    tensor_parallel: Positive | Auto = "auto"  # GPUs per replica, within one node
    replicas: Positive | Auto = "auto"  # at most
    fraction: Annotated[float, Field(gt=0, lt=1)] | None = None  # of one GPU, per replica
    weight_gib: Gib | None = None  # as served; None: the size of the files
    parameters: Annotated[float, Field(gt=0)] | None = None  # billions of active parameters per token
    attention_heads: Positive | None = None  # tensor_parallel must divide it
    image_tokens: Positive | None = None  # http: per frame, declared if there is no processor to count them
    adapter: str | None = None  # LoRA: a folder within the model's files, or a separate one
    engine_options: Mapping[str, JsonValue] = {}  # any other option of vLLM's AsyncEngineArgs
    template_options: Mapping[str, bool | int | str] = {}  # of the chat template, e.g. enable_thinking
    trust_remote_code: bool = False  # run Python code from the model's files
    long_side: Positive = 448  # pixels of the longer side of a resized frame
    max_tokens: Mapping[str, Positive] = {}  # by prompt name, or 'report'; overrides the prompt's
    sampling: Sampling = Sampling()  # how tokens are drawn
    options: Mapping[str, float | int | str] = {}  # of a simulated reader
    card: ModelCard | None = None  # catalogue entry of a published model
    http: HttpSpec | None = None  # its server, with engine: http

    @property
    def simulated(self) -> bool:
        """True for a simulated reader, which sees no frame."""
        return self.engine not in ("vllm", "http", "person")

    @property
    def answers_from(self) -> Literal["images", "readings", "truth", "options"]:
        """The input of the engine: frames, what a person read, the true answers, or the options alone."""
        if not self.simulated:
            return "readings" if self.engine == "person" else "images"
        return "options" if self.engine in ("uniform", "constant") else "truth"

    @property
    def told_questions(self) -> bool:
        """True for what answers by the question's id: a reader of the truth, or of a person's readings."""
        return self.answers_from in ("truth", "readings")

    @property
    def determined(self) -> bool:
        """True if the same request yields the same answer, so that arms may share its completion."""
        return self.sampling.determined and (self.http is None or self.http.sends_sampling)

    @property
    def counts_tokens(self) -> bool:
        """True if prompt tokens are known before sending, exactly or by declared image tokens."""
        return self.engine in ("vllm", "http") and bool(self.source or self.image_tokens)

    @property
    def estimates_tokens(self) -> bool:
        """True if prompt tokens are estimated from declared image tokens, without a processor."""
        return self.engine == "http" and not self.source and self.image_tokens is not None

    @property
    def served(self) -> HttpSpec:
        """The server of a model with engine: http."""
        assert self.http is not None, "checked when the configuration was read"
        return self.http

    @field_validator("engine_options")
    @classmethod
    def _not_set_here(cls, value: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
        check_names(value)
        return value

    @model_validator(mode="after")
    def _handed_on(self) -> "ModelSpec":
        if self.engine_options and self.engine != "vllm":
            raise ValueError(
                f"engine_options are vLLM's, and {self.name} has engine: {self.engine}; remove them"
            )
        return self

    @model_validator(mode="after")
    def _shared_or_split(self) -> "ModelSpec":
        if self.fraction is not None and self.tensor_parallel not in ("auto", 1):
            raise ValueError("fraction shares one GPU, tensor_parallel takes several; give one of them")
        return self

    @model_validator(mode="after")
    def _sourced(self) -> "ModelSpec":
        if self.engine == "vllm" and not self.source:
            raise ValueError(
                "a vllm model needs source: a hub id, a local folder, 'packaged/reader_small' or 'embedded'"
            )
        if self.engine == "person" and not self.source:
            raise ValueError("a person needs source: a file of readings that cardiolens.review export wrote")
        if (self.engine == "http") != (self.http is not None):
            raise ValueError(
                "engine: http needs http: with base_url and api_model, and no other engine has it"
            )
        if self.engine == "http" and not self.revision:
            raise ValueError(
                "an http model needs revision: what is known of its version, e.g. the commit that is served, "
                "a dated snapshot's name, or the date of asking"
            )
        if self.engine == "http" and self.replicas not in ("auto", 1):
            raise ValueError("an http model has one replica; raise http.max_in_flight to ask more at once")
        return self
