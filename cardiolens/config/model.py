"""What a configuration says of one model: where it comes from, how it is served, how it answers."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from cardiolens.config.base import Auto, Gib, Positive, Seed, Spec
from cardiolens.config.http import HttpSpec


class Sampling(Spec):
    """How tokens are drawn. Answers are shared between arms only where they are determined."""

    temperature: Annotated[float, Field(ge=0)] = 0.0
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    seed: Seed | None = None

    @property
    def determined(self) -> bool:
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
"""Fields of a model that say how it is served or what is known of it: what is asked is the same."""

EngineName = Literal[
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


Said = Annotated[str, Field(min_length=1)]


class ModelCard(Spec):
    """A catalogue entry; nothing in it changes what a sweep asks."""

    architecture: str | None = None  # as the pinned vLLM registers it; None: closed
    field: Literal["general", "medical"]
    licence: Said
    context: Positive | None  # tokens that the publisher gives it
    thinking: Literal["never", "always", "off", "on"]  # off, on: as `template_options` asks
    image_rule: Said  # how `image_tokens` was computed
    template: str = ""  # what to know of its chat template
    tensor_parallel: Mapping[Positive, Positive] = {}  # by GiB of a GPU: what auto takes of a node of eight
    verified: Literal["engine", "processor", "config", "none"]  # what of it was really run or read
    note: Said  # where each fact comes from


class ModelSpec(Spec):
    """One model and how it is served."""

    name: str
    engine: EngineName = "vllm"
    source: str = ""  # embedded | a local folder | a hub id; http: of the processor that counts tokens
    revision: str | None = None  # http: as declared, e.g. a commit, a snapshot's name or a date
    dtype: Literal["auto", "bfloat16", "float16", "float32"] = "bfloat16"
    quantization: str | None = None
    load_format: Literal["auto", "dummy"] = "auto"  # dummy: random weights, to measure speed
    max_model_len: Positive = 8192
    max_num_seqs: Positive = 128
    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1)] = 0.9
    kv_cache_gib: Gib | None = None  # CPU only
    tensor_parallel: Positive | Auto = "auto"  # GPUs a replica, within one node
    replicas: Positive | Auto = "auto"  # at most so many
    fraction: Annotated[float, Field(gt=0, lt=1)] | None = None  # of one GPU a replica
    weight_gib: Gib | None = None  # as served; None: counted from the files
    parameters: Annotated[float, Field(gt=0)] | None = None  # billions that one token passes through
    attention_heads: Positive | None = None  # which tensor_parallel must divide
    image_tokens: Positive | None = None  # http: of a frame, as declared, where no processor counts
    adapter: str | None = None  # LoRA: a folder within the model's files, or one of its own
    template_options: Mapping[str, bool | int | str] = {}  # of the chat template, e.g. enable_thinking
    trust_remote_code: bool = False  # run Python that comes with the model's files
    long_side: Positive = 448  # frames are resized so that their longer side has so many pixels
    max_tokens: Mapping[str, Positive] = {}  # by prompt name, or 'report'; overrides the prompt's
    sampling: Sampling = Sampling()
    options: Mapping[str, float | int | str] = {}  # of a simulated reader
    card: ModelCard | None = None  # of a published model, for the catalogue
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
    def estimates_tokens(self) -> bool:
        """Whether prompts are measured by declared image tokens, for want of a processor."""
        return self.engine == "http" and not self.source and self.image_tokens is not None

    @property
    def served(self) -> HttpSpec:
        """Where a model with engine: http is served."""
        assert self.http is not None, "checked when the configuration was read"
        return self.http

    @model_validator(mode="after")
    def _shared_or_split(self) -> "ModelSpec":
        if self.fraction is not None and self.tensor_parallel not in ("auto", 1):
            raise ValueError("fraction shares one GPU, tensor_parallel takes several; give one of them")
        return self

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
        if self.engine == "http" and self.replicas not in ("auto", 1):
            raise ValueError("an http model has one replica; raise http.max_in_flight to ask more at once")
        return self
