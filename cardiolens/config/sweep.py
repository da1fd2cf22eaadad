"""The sweep's configuration as frozen, validated values; no code after `parse` sees a DictConfig."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

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
    Control,
    Primary,
    PrimaryQuestionSpec,
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
        return _clashes(self)


def parse(tree: Mapping[str, Any]) -> SweepSpec:
    """Validate a composed configuration as a SweepSpec; InputError describes each wrong field."""
    return validated(SweepSpec, tree)


def _clashes(sweep: SweepSpec) -> Iterator[str]:
    """Yield the parts of a sweep that do not go together, and what to do."""
    for prompt in sweep.prompt:
        yield from _of_prompt(sweep, prompt)
    yield from _of_pictures(sweep)
    yield from _of_chosen_frames(sweep)
    yield from _of_models(sweep)
    if "captions" in sweep.control and sweep.caption == "none":
        yield "control captions shows captions alone, and caption is none; give view or full"
    yield from _of_primary(sweep)


def _clash(first: str, second: str) -> str:
    return f"{first}, and {second}; leave one of them out"


def _of_prompt(sweep: SweepSpec, prompt: PromptSpec) -> Iterator[str]:
    """A prompt goes with the data, the controls, the selectors and the models of its sweep."""
    hidden = [name for name in sweep.control if name in ("blind", "captions")]
    if prompt.chained and hidden:
        yield _clash(f"prompt {prompt.name} writes about images first", f"control {hidden[0]} shows none")
    if prompt.steps != "none" and not sweep.dataset.has_cases:
        yield (
            f"prompt {prompt.name} has steps {prompt.steps}, which need cases, e.g. those of "
            "dataset=medthinkvqa; leave it out"
        )
    if prompt.name == HEADLINE["prompt"] and (prompt.shots or prompt.cine == "video"):
        what = f"{prompt.shots} solved examples" if prompt.shots else "cine as videos"
        yield (
            f"prompt {prompt.name} shows {what}, and headlines are asked with {prompt.name} alone; "
            "give the prompt a name of its own, e.g. prompt=[standard,two_shots]"
        )
    if prompt.shots:
        shown = f"prompt {prompt.name} shows {prompt.shots} solved examples"
        if sweep.dataset.has_cases:
            yield _clash(shown, f"the cases of dataset={sweep.dataset.map} have texts that they would repeat")
        for name in _choosing(sweep):
            yield _clash(shown, f"with selector {name} the reader chooses its frames, which examples do not")
    if prompt.cine == "video":
        yield from _of_videos(sweep, f"prompt {prompt.name} shows cine as videos")
    if prompt.samples > 1:
        yield from _of_samples(sweep, f"prompt {prompt.name} asks for {prompt.samples} samples")


def _choosing(sweep: SweepSpec) -> list[str]:
    """Return the names of the selectors with which the reader chooses its frames."""
    return [selector.name for selector in sweep.selector if selector.kind == "self"]


def _of_pictures(sweep: SweepSpec) -> Iterator[str]:
    """Images of a case or of a public set of pictures have no views, and not all have captions."""
    if sweep.dataset.source is None:
        return
    if sweep.dataset.has_pictures and "captions" in sweep.control:
        yield (
            f"control captions: the pictures of dataset={sweep.dataset.map} have no captions; leave "
            "it out, or take control=[none,blind]"
        )
    for selector in sweep.selector:
        if selector.kind not in CASE_SELECTORS:
            yield (
                f"selector {selector.name}: images of a case have no views to route and no common size; "
                f"choose of kind {', '.join(CASE_SELECTORS)}, e.g. selector=[uniform]"
            )


def _of_chosen_frames(sweep: SweepSpec) -> Iterator[str]:
    """A reader that chooses its frames is shown them, and asks for a number of them."""
    strange = [control for control in sweep.control if control in CHANGED_FRAMES or is_word(control)]
    counted = [budget for budget in sweep.budget if isinstance(budget, TokenBudget)]
    for name in _choosing(sweep):
        if strange:
            legal = ", ".join(control for control in get_args(Control) if control not in CHANGED_FRAMES)
            yield (
                f"control {strange[0]} does not show the chosen frames, and with selector {name} the "
                f"reader chooses its frames; leave one of them out, or choose of control {legal}"
            )
        if counted:
            yield (
                f"budget {counted[0]}: with selector {name} a reader asks for a number of frames; "
                "give a number, e.g. 16, or leave that selector out"
            )


def _of_videos(sweep: SweepSpec, shown: str) -> Iterator[str]:
    """Videos need cine, its phases in order, and a model that takes videos."""
    if sweep.dataset.source is not None:
        yield _clash(shown, f"dataset={sweep.dataset.map} has single images and no cine")
    for selector in sweep.selector:
        if selector.kind == "self":
            yield _clash(shown, f"selector {selector.name} asks for single frames (it has kind self)")
        if selector.order == "nested":
            parts = "parts the phases of a slice (it has order nested)"
            yield _clash(shown, f"selector {selector.name} {parts}")
    for model in sweep.model:
        if why := model.why_no_video:
            yield f"{shown}, and model {model.name} {why}"


def _of_samples(sweep: SweepSpec, asks: str) -> Iterator[str]:
    """Several samples need readers that answer one request repeatedly, with other seeds."""
    for name in _choosing(sweep):
        yield _clash(asks, f"with selector {name} each would choose other frames")
    for model in sweep.model:
        if model.engine == "person":
            yield _clash(asks, f"{model.name} is a person, who read each question once")
        if model.http is not None and not model.http.sends_sampling:
            yield (
                f"{asks}, with a temperature and a seed for each, and model {model.name} has "
                "http.dialect: reasoning; set openai if the server takes them, or leave one of them out"
            )


def _of_models(sweep: SweepSpec) -> Iterator[str]:
    """A token budget needs models with known tokens, and structured decoding a server that has it."""
    counted = [budget for budget in sweep.budget if isinstance(budget, TokenBudget)]
    for model in sweep.model:
        if counted and not model.counts_tokens:
            kinds = {"vllm": "has no processor", "http": "declares no image_tokens", "person": "is a person"}
            yield (
                f"budget {counted[0]} needs a model with a known number of visual tokens, and {model.name} "
                f"{kinds.get(model.engine, 'is a simulated reader')}; give a number of frames, or leave "
                "that model out"
            )
        if sweep.answer_format == "choice" and model.http and model.http.dialect != "vllm":
            yield (
                f"answer_format choice needs structured decoding, which {model.name} is not known to have; "
                "use letters or json, or declare http.dialect: vllm if vLLM serves it"
            )


def _of_primary(sweep: SweepSpec) -> Iterator[str]:
    """What is declared before a run must be in the run."""
    names = [model.name for model in sweep.model]
    for name in sweep.compared:
        if name not in names:
            yield f"primary names {name!r}, which is none of the models {', '.join(names)}"
    levels = {name: {entry.name for entry in getattr(sweep, name)} for name in ("prompt", "selector")}
    levels |= {name: set(map(str, getattr(sweep, name))) for name in ("budget", "control", "wording")}
    if isinstance(sweep.primary, PrimaryQuestionSpec):
        yield from _of_question(sweep, sweep.primary, levels[sweep.primary.factor])
        return
    for factor, value in HEADLINE.items() if sweep.primary else ():
        if value not in levels[factor]:
            yield (
                f"primary compares headlines, which are asked with {factor} {value}, and {factor} is "
                f"{', '.join(sorted(levels[factor]))}; add {value}"
            )


def _of_question(sweep: SweepSpec, primary: PrimaryQuestionSpec, levels: set[str]) -> Iterator[str]:
    """A declared question needs models to ask, and both of the levels that it compares."""
    if not sweep.compared:
        yield "primary asks a question over all models, and every model is a simulated reader"
    if primary.factor == "budget":
        if sum(level.isdecimal() for level in levels) < 2:
            yield f"primary compares budgets, and budget is {', '.join(levels)}; give two numbers"
        return
    for lacking in sorted({str(primary.level), REFERENCES[primary.factor]} - levels):
        yield (
            f"primary compares {primary.words}, and {primary.factor} is {', '.join(sorted(levels))}; "
            f"add {lacking}"
        )
