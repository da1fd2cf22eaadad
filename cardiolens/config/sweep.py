"""The sweep's configuration as frozen, validated values; no code after `parse` sees a DictConfig."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, field_validator

from cardiolens.config.base import GivenPath, Positive, Seed, Spec, validated
from cardiolens.config.cluster import ClusterSpec, SlurmSpec
from cardiolens.config.dataset import DatasetSpec
from cardiolens.config.model import ModelSpec
from cardiolens.config.plugins import BUILT_IN, PluginMetric, is_word, part_of
from cardiolens.config.sweep_factors import (
    CHANGED_FRAMES,
    HEADLINE,
    REFERENCES,
    AnyControl,
    Budget,
    Primary,
    PrimaryQuestionSpec,
    PrimarySpec,
    PromptSpec,
    SelectorSpec,
    TokenBudget,
    Wording,
)

CASE_SELECTORS = ("uniform", "random", "all")  # kinds that need neither views nor pixels


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

    def _problems(self) -> Iterator[str]:
        if self.flush_seconds > self.stall_seconds:
            yield "flush_seconds is more than stall_seconds, which would end the run before; lower it"


ReportMetric = Annotated[
    Annotated[Literal["meteor", "bertscore"], Tag(BUILT_IN)] | PluginMetric, Discriminator(part_of)
]


class StatisticsSpec(Spec):
    """Options of the statistics."""

    min_n: Positive = 5  # subtasks with fewer items are left out of tier means
    resamples: Annotated[int, Field(gt=0, le=100_000)] = 2000  # bootstrap resamples of patients per interval
    seed: Seed = 2026  # seed of the resamples
    # metrics of report text, besides ROUGE-L and BLEU-4; package.name: of another package
    report_metrics: tuple[ReportMetric, ...] = ()
    bertscore_model: GivenPath | None = None  # folder of BERTScore's encoder
    bertscore_layer: Annotated[int, Field(ge=0)] | None = None  # encoder layer that BERTScore compares

    @property
    def sampling(self) -> dict[str, int]:
        """Keyword arguments that every statistic takes."""
        return self.model_dump(include={"min_n", "resamples", "seed"})


def _scheduler(cluster: Any) -> str:
    own = SlurmSpec.model_fields.keys() - ClusterSpec.model_fields.keys()
    is_slurm = isinstance(cluster, SlurmSpec) or (isinstance(cluster, Mapping) and cluster.keys() & own)
    return "<slurm>" if is_slurm else "<ray>"


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
        for first, clashing in (*_of_prompts(self), *_of_frames(self), *_of_budgets(self)):
            yield from (f"{first}, and {second}; leave one of them out" for second in clashing)
        yield from _of_data(self)
        if self.primary is not None:
            yield from _of_primary(self, self.primary)


def parse(tree: Mapping[str, Any]) -> SweepSpec:
    """Validate a composed configuration as a SweepSpec; InputError describes each wrong field."""
    return validated(SweepSpec, tree)


Clash = tuple[str, Sequence[str]]
"""A part of a sweep, and the other parts that it does not go with."""


def _of_prompts(sweep: SweepSpec) -> Iterator[Clash]:
    """A prompt goes with the data, the controls, the selectors and the models of its sweep."""
    data, choosing = sweep.dataset, _choosing(sweep)
    hiding = [f"control {name} shows none" for name in sweep.control if name in ("blind", "captions")]
    texts = [f"the cases of dataset={data.map} have texts that they would repeat"] if data.has_cases else []
    single = [f"dataset={data.map} has single images and no cine"] if data.source is not None else []
    nested = [
        f"selector {selector.name} parts the phases of a slice (it has order nested)"
        for selector in sweep.selector
        if selector.order == "nested"
    ]
    videoless = [f"model {model.name} {why}" for model in sweep.model if (why := model.why_no_video)]
    people = [model.name for model in sweep.model if model.engine == "person"]
    once = [f"{name} is a person, who read each question once" for name in people]
    seedless = [
        f"model {model.name} has http.dialect: reasoning, which is sent no seeds"
        for model in sweep.model
        if model.http is not None and not model.http.sends_sampling
    ]
    for prompt in sweep.prompt:
        name = f"prompt {prompt.name}"
        alone = [f"headlines are asked with {prompt.name} alone (give it a name of its own)"]
        headlines = alone if prompt.name == HEADLINE["prompt"] else []
        if prompt.chained:
            yield f"{name} writes about images first", hiding
        if prompt.shots:
            yield f"{name} shows {prompt.shots} solved examples", [*texts, *choosing, *headlines]
        if prompt.cine == "video":
            unshown = [*single, *choosing, *nested, *videoless, *headlines]
            yield f"{name} shows cine as videos", unshown
        if prompt.samples > 1:
            yield f"{name} asks for {prompt.samples} samples", [*choosing, *once, *seedless]


def _choosing(sweep: SweepSpec) -> list[str]:
    names = [selector.name for selector in sweep.selector if selector.kind == "self"]
    return [f"with selector {name} the reader chooses its frames" for name in names]


def _of_frames(sweep: SweepSpec) -> Iterator[Clash]:
    """A reader that chooses its frames is shown them; captions are shown alone."""
    for control in sweep.control:
        if control in CHANGED_FRAMES or is_word(control):
            yield f"control {control} does not show the chosen frames", _choosing(sweep)
    if "captions" in sweep.control:
        yield "control captions shows captions alone", ["caption is none"] if sweep.caption == "none" else []


def _of_budgets(sweep: SweepSpec) -> Iterator[Clash]:
    """A token budget needs models with known tokens, and structured decoding a server that has it."""
    unknown = [
        f"{model.name} declares no image_tokens (it has engine: {model.engine})"
        for model in sweep.model
        if model.engine not in ("vllm", "http") or not (model.source or model.image_tokens)
    ]
    for budget in sweep.budget:
        if isinstance(budget, TokenBudget):
            yield f"budget {budget} needs a known number of visual tokens", [*unknown, *_choosing(sweep)]
    if sweep.answer_format == "choice":
        servers = [model for model in sweep.model if model.http and model.http.dialect != "vllm"]
        why = "is not known to have it (http.dialect: vllm, if vLLM serves it)"
        yield "answer_format choice needs structured decoding", [f"{model.name} {why}" for model in servers]


def _of_data(sweep: SweepSpec) -> Iterator[str]:
    """Images of a case or of a public set of pictures have no views, and not all have captions or steps."""
    dataset = sweep.dataset
    for prompt in sweep.prompt:
        if prompt.steps != "none" and not dataset.has_cases:
            where = "e.g. those of dataset=medthinkvqa"
            yield f"prompt {prompt.name} has steps {prompt.steps}, which need cases, {where}; leave it out"
    if dataset.has_pictures and "captions" in sweep.control:
        yield f"control captions: the pictures of dataset={dataset.map} have no captions; leave it out"
    for selector in sweep.selector:
        if dataset.source is not None and selector.kind not in CASE_SELECTORS:
            yield (
                f"selector {selector.name}: images of a case have no views to route and no common size; "
                f"choose of kind {', '.join(CASE_SELECTORS)}, e.g. selector=[uniform]"
            )


def _of_primary(sweep: SweepSpec, primary: PrimarySpec | PrimaryQuestionSpec) -> Iterator[str]:
    """What is declared before a run must be in the run: the models, and the levels of what is compared."""
    levels = {
        name: {entry.name for entry in getattr(sweep, name)} for name in ("model", "prompt", "selector")
    }
    levels |= {name: set(map(str, getattr(sweep, name))) for name in ("budget", "control", "wording")}
    if isinstance(primary, PrimarySpec):
        what, needed = "headlines, which are", {factor: {level} for factor, level in HEADLINE.items()}
        for name in (primary.model, primary.versus):
            if name not in levels["model"]:
                models = ", ".join(model.name for model in sweep.model)
                yield f"primary names {name!r}, which is none of the models {models}"
    else:
        what, needed = f"{primary.words},", {}
        if not sweep.compared:
            yield "primary asks a question over all models, and every model is a simulated reader"
        if primary.factor != "budget":
            needed = {primary.factor: {str(primary.level), REFERENCES[primary.factor]}}
        elif sum(level.isdecimal() for level in levels["budget"]) < 2:
            yield f"primary compares budgets, and budget is {', '.join(levels['budget'])}; give two numbers"
    for factor, compared in needed.items():
        for level in sorted(compared - levels[factor]):
            names = ", ".join(sorted(levels[factor]))
            yield f"primary compares {what} asked with {factor} {level}, and {factor} is {names}; add {level}"
