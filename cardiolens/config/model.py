"""Configuration of one model: source, serving and sampling."""

import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Annotated, Any, Literal

import yaml
from pydantic import Discriminator, Field, JsonValue, Tag, field_validator

from cardiolens.config.base import Auto, Gib, Positive, Seed, Spec
from cardiolens.config.http import SERVING as HTTP_SERVING
from cardiolens.config.http import HttpSpec
from cardiolens.config.plugins import BUILT_IN, READER, PluginEngine, is_word, part_of


class Sampling(Spec):
    """Sampling parameters. Arms share a completion only if sampling is deterministic."""

    temperature: Annotated[float, Field(ge=0)] = 0.0  # 0: the most likely token
    seed: Seed | None = None  # null: the engine chooses

    @property
    def fields(self) -> dict[str, float | int | None]:
        """What decides the draw of a token; top_p 1.0 leaves none out as unlikely."""
        return {"temperature": self.temperature, "top_p": 1.0, "seed": self.seed}


_LISTS: Mapping[str, Mapping[str, str]] = yaml.safe_load(
    files("cardiolens.config").joinpath("engine_options.yaml").read_text(encoding="utf-8")
)
SET_HERE = {name: instead for instead, names in _LISTS["set_here"].items() for name in names.split()}
"""vLLM options that CardioLens sets itself, and the setting to use instead."""

SAME_ANSWERS = frozenset(name for names in _LISTS["same_answers"].values() for name in names.split())
"""Options that change how an engine works, not its answers; every other option counts as changing answers."""

SERVING = ("replicas", "tensor_parallel", "max_num_seqs", "weight_gib", "card")
"""Fields about serving or description of a model; they change no request and no answer."""

VIDEO_ARCHITECTURES = (
    "Qwen2VLForConditionalGeneration",
    "Qwen2_5_VLForConditionalGeneration",
    "Qwen3VLForConditionalGeneration",
    "Qwen3VLMoeForConditionalGeneration",
    "Qwen3_5ForConditionalGeneration",
)
"""Architectures to which videos are sent: tried with the pinned vLLM and transformers."""

_THINKING_NAME = re.compile(r"think|reason|magistral|qwq|gpt-oss|(?<![a-z])r1(?![a-z0-9])", re.IGNORECASE)

OwnEngine = Literal[
    "vllm",
    "http",
    "person",  # a person who read on the page of cardiolens.review; source: the file of readings
    "oracle",  # and all below: simulated readers
    "uniform",
    "prevalence",
    "constant",
    "noisy",
    "collapse",
    "conservative",
    "budget_effect",
    "measuring",
]
EngineName = Annotated[Annotated[OwnEngine, Tag(BUILT_IN)] | PluginEngine, Discriminator(part_of)]

Text = Annotated[str, Field(min_length=1)]


class ModelCard(Spec):
    """A catalogue entry; it changes no request of a sweep."""

    architecture: str | None = None  # name in the pinned vLLM's registry; None: closed model
    parameters: Annotated[float, Field(gt=0)] | None = None  # billions of active parameters per token
    attention_heads: Positive | None = None  # of the language model; tensor_parallel must divide it
    field: Literal["general", "medical"]  # intended use
    licence: Text  # licence of the weights
    precision_of: str | None = None  # the entry of the same model with higher-precision weights
    context: Positive | None  # published context length in tokens
    thinking: Literal["never", "always", "off", "on"]  # off, on: set by `template_options`
    image_rule: Text  # how `image_tokens` is computed
    template: str = ""  # notes on the chat template
    tensor_parallel: Mapping[Positive, Positive] = {}  # GiB per GPU -> GPUs that auto uses on a node of eight
    verified: Literal[
        "engine", "processor", "config and template", "config", "template", "none"
    ]  # how far this project checked the entry
    sources: tuple[Mapping[str, JsonValue], ...] = ()  # public copies of its files that were read
    note: Text  # the source of each fact


class ModelSpec(Spec):
    """One model: its files or server, its serving options and its limits."""

    name: str  # name of the model's file
    # what answers; after person: simulated readers; package.name, reader:package.name: of another package
    engine: EngineName = "vllm"
    source: str = ""  # packaged/name | folder | hub id; http: its processor; person: the file
    revision: str | None = None  # http: as declared, e.g. a commit, a snapshot's name or a date
    max_model_len: Positive = 8192  # tokens of prompt and reply together
    # concurrent requests of one engine; null: 128, of a server 16 (and fewer while it replies 429)
    max_num_seqs: Positive | None = None
    tensor_parallel: Positive | Auto = "auto"  # GPUs per replica, within one node
    replicas: Positive | Auto = "auto"  # largest number of replicas
    weight_gib: Gib | None = None  # size of the weights as served; None: the size of the files
    image_tokens: Positive | None = None  # http: tokens per frame, declared if no processor counts them
    adapter: str | None = None  # LoRA adapter: a folder within the model's files, or a separate one
    # options of vLLM's AsyncEngineArgs, e.g. dtype, quantization, gpu_memory_utilization
    engine_options: Mapping[str, JsonValue] = {}
    template_options: Mapping[str, bool | int | str] = {}  # chat template options, e.g. enable_thinking
    reasoning_parser: str | None = None  # vLLM's name of what separates the reasoning of a model that thinks
    trust_remote_code: bool = False  # run Python code from the model's files
    long_side: Positive = 448  # pixels of the longer side of a resized frame
    # by prompt name, 'report' or 'step'; standard and reasoning also as the least of prompts of that style
    max_tokens: Mapping[str, Positive] = {}
    sampling: Sampling = Sampling()  # sampling parameters
    options: Mapping[str, float | int | str] = {}  # of a simulated reader, or an engine of another package
    card: ModelCard | None = None  # catalogue entry of a published model
    http: HttpSpec | None = None  # the server of a model with engine: http

    @property
    def simulated(self) -> bool:
        """True for a simulated reader, which is sent no frames."""
        if self.plugged:
            return self.engine.startswith(READER)
        return self.engine not in ("vllm", "http", "person")

    @property
    def plugged(self) -> bool:
        """True if the engine, or the simulated reader, is a part of another package."""
        return is_word(self.engine)

    @property
    def thinks(self) -> bool:
        """True if the model reasons before it answers, by its template options, its card or its name."""
        switches = [bool(value) for name, value in self.template_options.items() if "think" in name]
        if switches:
            return any(switches)
        if self.card is not None:
            return self.card.thinking in ("always", "on")
        return _THINKING_NAME.search(self.source) is not None

    @property
    def separates_reasoning(self) -> bool:
        """True if the engine stores reasoning and answer apart."""
        return self.thinks and self.reasoning_parser is not None

    @property
    def answers_from(self) -> Literal["images", "readings", "truth", "options"]:
        """The input of the engine: frames, a person's readings, the true answers, or the options alone."""
        if not self.simulated:
            return "readings" if self.engine == "person" else "images"
        return "options" if self.engine in ("uniform", "constant") else "truth"

    @property
    def told_questions(self) -> bool:
        """True for an engine that answers by question id: from the truth, or from a person's readings."""
        return self.answers_from in ("truth", "readings")

    @property
    def determined(self) -> bool:
        """True if greedy decoding or a seed yields the same answer again, so that arms may share it."""
        is_fixed = self.sampling.temperature == 0 or self.sampling.seed is not None
        return is_fixed and (self.http is None or self.http.sends_sampling)

    @property
    def estimates_tokens(self) -> bool:
        """True if prompt tokens are estimated from declared image tokens, without a processor."""
        return self.engine == "http" and not self.source and self.image_tokens is not None

    @property
    def at_once(self) -> int:
        """The most concurrent requests of one engine."""
        return self.max_num_seqs or (16 if self.engine == "http" else 128)

    @property
    def dtype(self) -> JsonValue:
        """The number format of weights and computation."""
        return self.engine_options.get("dtype", "bfloat16")

    @property
    def has_random_weights(self) -> bool:
        """Whether the engine draws the weights in place of reading them, to measure speed."""
        return self.engine_options.get("load_format") == "dummy"

    @property
    def gpu_memory_utilization(self) -> float:
        """The share of GPU memory that vLLM uses."""
        share = self.engine_options.get("gpu_memory_utilization", 0.9)
        assert isinstance(share, int | float), "checked when the configuration was read"
        return float(share)

    def deciding(self) -> dict[str, Any]:
        """Return the options that decide requests and answers."""
        served: dict[str, Any] = {**dict.fromkeys(SERVING, True), "http": set(HTTP_SERVING)}
        options = {"engine_options": changing_answers(self.engine_options)}
        return self.model_dump(mode="json", exclude=served) | options

    @property
    def why_no_video(self) -> str | None:
        """Why a model is sent no videos; None if it may be."""
        if self.simulated or self.engine == "person":
            return None
        if self.engine == "http":
            return "is asked over HTTP, where a video is coded with loss (it is not with engine: vllm)"
        if self.plugged:
            return f"has engine: {self.engine}, which is sent single frames alone"
        if self.card is None or self.card.architecture in VIDEO_ARCHITECTURES:
            return None
        return f"is of {self.card.architecture}, and videos are sent to {', '.join(VIDEO_ARCHITECTURES)}"

    @property
    def served(self) -> HttpSpec:
        """The server of a model with engine: http."""
        assert self.http is not None, "checked when the configuration was read"
        return self.http

    @field_validator("engine_options")
    @classmethod
    def _legal_options(cls, value: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
        for name in value:
            if name in SET_HERE:
                raise ValueError(f"{name} is set by CardioLens; use {SET_HERE[name]}")
        share = value.get("gpu_memory_utilization", 1)
        if not isinstance(share, int | float) or not 0 < share <= 1:
            raise ValueError(f"gpu_memory_utilization is {share!r}; expected a share above 0, at most 1")
        return value

    def _problems(self) -> Iterator[str]:
        is_vllm, is_http = self.engine == "vllm", self.engine == "http"
        for name in ("engine_options", "reasoning_parser", "adapter"):
            if getattr(self, name) and not is_vllm:
                yield f"{name} is for engine: vllm, and {self.name} has engine: {self.engine}; remove it"
        if self.options and self.engine in ("vllm", "http", "person"):
            yield f"options are of simulated readers and plug-ins; {self.name} has engine_options or none"
        if self.reasoning_parser == "mistral":
            yield (
                f"reasoning_parser: mistral of {self.name} works with Mistral's own tokenizer alone, which "
                "reads the marks of a rendered prompt as plain text; serve the model by vLLM with "
                "tokenizer_mode: mistral, and ask it with engine: http (a server separates reasoning itself)"
            )
        if is_vllm and not self.source:
            yield "a vllm model needs source: a hub id, a local folder, or 'packaged/reader_small'"
        if self.plugged and self.source:
            yield (
                f"source {self.source!r} is not read by an engine of another package; name what {self.name} "
                "needs in its options"
            )
        if self.engine == "person" and not self.source:
            yield "a person needs source: a file of readings that cardiolens.review export wrote"
        if is_http != (self.http is not None):
            yield "engine: http needs http: with base_url and api_model, and no other engine has it"
        if is_http and not self.revision:
            yield (
                "an http model needs revision: what is known of its version, e.g. the served commit, a dated "
                "snapshot's name, or the date of the requests"
            )
        if is_http and self.replicas not in ("auto", 1):
            yield "an http model has one replica; raise max_num_seqs to ask more at once"


def changing_answers(options: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the options that belong to a model's identity."""
    return {name: value for name, value in options.items() if name not in SAME_ANSWERS}
