"""The sweep's configuration as frozen, validated values; no code after `parse` sees a DictConfig."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
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
    if sweep.primary is not None:
        yield from _of_primary(sweep, sweep.primary)


def _clash(first: str, others: Iterable[str]) -> Iterator[str]:
    for other in others:
        yield f"{first}, and {other}; leave one of them out"


def _of_prompt(sweep: SweepSpec, prompt: PromptSpec) -> Iterator[str]:
    """A prompt goes with the data, the controls, the selectors and the models of its sweep."""
    name, cases = f"prompt {prompt.name}", sweep.dataset.has_cases
    choosing = [selector.name for selector in sweep.selector if selector.kind == "self"]
    if prompt.chained:
        hiding = (control for control in sweep.control if control in ("blind", "captions"))
        yield from _clash(
            f"{name} writes about images first", (f"control {one} shows none" for one in hiding)
        )
    if prompt.steps != "none" and not cases:
        where = "e.g. those of dataset=medthinkvqa"
        yield f"{name} has steps {prompt.steps}, which need cases, {where}; leave it out"
    shots = f"{name} shows {prompt.shots} solved examples" if prompt.shots else ""
    videos = f"{name} shows cine as videos" if prompt.cine == "video" else ""
    if prompt.name == HEADLINE["prompt"] and (shots or videos):
        yield (
            f"{shots or videos}, and headlines are asked with {prompt.name} alone; give the prompt a name of "
            "its own, e.g. prompt=[standard,two_shots]"
        )
    if shots:
        texts = [f"the cases of dataset={sweep.dataset.map} have texts that they would repeat"]
        yield from _clash(shots, texts if cases else [])
        yield from _clash(
            shots,
            (f"with selector {one} the reader chooses its frames, which examples do not" for one in choosing),
        )
    if videos:
        yield from _clash(videos, _without_videos(sweep))
    if prompt.samples > 1:
        samples = f"{name} asks for {prompt.samples} samples"
        yield from _clash(
            samples, (f"with selector {one} each would choose other frames" for one in choosing)
        )
        yield from _clash(samples, _without_samples(sweep))


def _without_videos(sweep: SweepSpec) -> Iterator[str]:
    """Videos need cine, its phases in order, and a model that takes videos."""
    if sweep.dataset.source is not None:
        yield f"dataset={sweep.dataset.map} has single images and no cine"
    for selector in sweep.selector:
        if selector.kind == "self":
            yield f"selector {selector.name} asks for single frames (it has kind self)"
        if selector.order == "nested":
            yield f"selector {selector.name} parts the phases of a slice (it has order nested)"
    for model in sweep.model:
        if why := model.why_no_video:
            yield f"model {model.name} {why}"


def _without_samples(sweep: SweepSpec) -> Iterator[str]:
    """Several samples need readers that answer one request repeatedly, with other seeds."""
    for model in sweep.model:
        if model.engine == "person":
            yield f"{model.name} is a person, who read each question once"
        if model.http is not None and not model.http.sends_sampling:
            yield (
                f"model {model.name} has http.dialect: reasoning, without a temperature and a seed for each "
                "(openai, if the server takes them)"
            )


def _of_pictures(sweep: SweepSpec) -> Iterator[str]:
    """Images of a case or of a public set of pictures have no views, and not all have captions."""
    dataset = sweep.dataset
    if dataset.has_pictures and "captions" in sweep.control:
        yield f"control captions: the pictures of dataset={dataset.map} have no captions; leave it out"
    for selector in sweep.selector:
        if dataset.source is not None and selector.kind not in CASE_SELECTORS:
            yield (
                f"selector {selector.name}: images of a case have no views to route and no common size; "
                f"choose of kind {', '.join(CASE_SELECTORS)}, e.g. selector=[uniform]"
            )


def _of_chosen_frames(sweep: SweepSpec) -> Iterator[str]:
    """A reader that chooses its frames is shown them, and asks for a number of them."""
    for selector in sweep.selector:
        if selector.kind != "self":
            continue
        chooses = f"with selector {selector.name} the reader chooses its frames"
        for control in sweep.control:
            if control in CHANGED_FRAMES or is_word(control):
                yield from _clash(chooses, [f"control {control} does not show the chosen frames"])
        for budget in sweep.budget:
            if isinstance(budget, TokenBudget):
                yield f"{chooses}, and asks for a number of them; give a number, e.g. 16, for budget {budget}"


def _of_models(sweep: SweepSpec) -> Iterator[str]:
    """A token budget needs models with known tokens, and structured decoding a server that has it."""
    counted = [budget for budget in sweep.budget if isinstance(budget, TokenBudget)]
    for model in sweep.model:
        if counted and not model.counts_tokens:
            why = "declares no image_tokens" if model.engine == "http" else f"has engine: {model.engine}"
            yield (
                f"budget {counted[0]} needs a model with a known number of visual tokens, and {model.name} "
                f"{why}; give a number of frames, or leave that model out"
            )
        if sweep.answer_format == "choice" and model.http and model.http.dialect != "vllm":
            yield (
                f"answer_format choice needs structured decoding, which {model.name} is not known to have; "
                "use letters or json, or declare http.dialect: vllm if vLLM serves it"
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
    for factor, wanted in needed.items():
        for level in sorted(wanted - levels[factor]):
            given = ", ".join(sorted(levels[factor]))
            yield f"primary compares {what} asked with {factor} {level}, and {factor} is {given}; add {level}"
