"""The sweep's configuration as frozen, validated values; no code after `parse` sees a DictConfig."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import Discriminator, Field, Tag, ValidationError, field_validator, model_validator

from cardiolens.base.entry_points import is_word
from cardiolens.base.errors import InputError
from cardiolens.config.base import GivenPath, Positive, Seed, Spec, describe
from cardiolens.config.cluster import ClusterSpec, SlurmSpec
from cardiolens.config.dataset import DatasetSpec
from cardiolens.config.model import ModelSpec
from cardiolens.config.plugin_words import OURS, Options, PluginControl, PluginSelector, whose
from cardiolens.config.steps import PageSpec, StatisticsSpec, StreamSpec, TrackerSpec

OwnSelector = Literal[
    "random", "stratified", "clinical", "uniform", "all", "kcenter", "kmedoids", "relevance", "self"
]

SelectorKind = Annotated[Annotated[OwnSelector, Tag(OURS)] | PluginSelector, Discriminator(whose)]


class SelectorSpec(Spec):
    """One protocol that selects frames."""

    name: str  # name in arms and tables
    # the selection rule; docs/selection.md; package.name: of another package
    kind: SelectorKind
    seeds: tuple[Seed, ...] = ()  # random and stratified: one arm per seed
    pool: Literal["routed", "sequence"] = "routed"  # candidate frames; not for clinical and stratified
    lax_small_k: Literal["temporal", "spatial"] = "temporal"  # clinical: long-axis frames at small budgets
    encoder: GivenPath | None = None  # folder of the image encoder for kcenter, kmedoids, relevance
    order: Literal["presented", "nested"] = "presented"  # nested: smaller budgets first, a shared prefix
    rounds: Positive = 2  # self: most requests for frames before the answer
    options: Options = ()  # of a kind of another package, by name

    @model_validator(mode="after")
    def _seeded(self) -> "SelectorSpec":
        if not self.plugged and (self.kind in ("random", "stratified")) != bool(self.seeds):
            raise ValueError("a random or stratified selector needs seeds, e.g. [2026]; no other has any")
        if self.kind == "stratified" and self.pool != "routed":
            raise ValueError("kind stratified has clinical's quotas of the routed views; leave out pool")
        if len(set(self.seeds)) != len(self.seeds):
            raise ValueError(f"seeds {list(self.seeds)} contain a seed twice; give each once")
        if self.kind == "relevance" and self.encoder is None:
            raise ValueError("kind relevance needs encoder, the local folder of a CLIP type model")
        if self.encoder is not None and not self.looks_at_pixels:
            raise ValueError(
                f"kind {self.kind} looks at no frames; encoder goes with kcenter, kmedoids, relevance"
            )
        return self

    @model_validator(mode="after")
    def _by_the_reader(self) -> "SelectorSpec":
        if self.kind != "self" and self.rounds != type(self).model_fields["rounds"].default:
            raise ValueError(
                f"rounds are requests for frames by readers of kind self, not {self.kind}; leave them out"
            )
        if self.kind == "self" and self.order != "presented":
            raise ValueError("kind self has no smaller budgets to show first; leave out order")
        return self

    @model_validator(mode="after")
    def _optional(self) -> "SelectorSpec":
        if self.options and not self.plugged:
            raise ValueError(
                f"options {[name for name, _ in self.options]} are for kinds of other packages, and "
                f"{self.kind} is ours; leave them out"
            )
        return self

    @property
    def plugged(self) -> bool:
        """True if the rule is a part of another package."""
        return is_word(self.kind)

    @property
    def looks_at_pixels(self) -> bool:
        """True if the selector uses features of the frames, which must be computed first."""
        return self.kind in ("kcenter", "kmedoids", "relevance")


class PromptSpec(Spec):
    """One prompt: how a question is asked."""

    name: str  # name in arms and tables
    # reasoning: the reply may reason before its answer; paper: so, by the paper's points where they are known
    style: Literal["standard", "reasoning", "paper"]
    max_tokens: Positive  # limit of a reply
    report_max_tokens: Positive = 2048  # limit of a reply that is a report
    gold: Literal["none", "captions", "findings"] = "none"  # cases: texts about the images in the prompt
    # cases only: before it answers, the model describes and summarises (self), or discusses the case
    steps: Literal["none", "self", "discussion"] = "none"
    step_max_tokens: Positive = 512  # limit of the reply to a step
    samples: Positive = 1  # replies per question; the most frequent answer counts
    # temperature of several samples, above 0; with one sample, set the model's sampling.temperature
    temperature: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    shots: Annotated[int, Field(ge=0)] = 0  # solved questions of other patients before each question
    shots_seed: Seed = 2026  # which ones they are
    # video: phases of a slice that follow one another are one video, for models with takes_video
    cine: Literal["frames", "video"] = "frames"

    @model_validator(mode="after")
    def _own_words(self) -> "PromptSpec":
        if self.steps == "self" and self.gold != "none":
            raise ValueError(f"steps self and gold {self.gold} both describe the images; choose one")
        return self

    @model_validator(mode="after")
    def _drawn(self) -> "PromptSpec":
        if self.samples > 1 and not self.temperature:
            given = "none" if self.temperature is None else f"{self.temperature:g}"
            raise ValueError(
                f"samples {self.samples} would all be the same reply with temperature {given}; give one "
                "above 0, e.g. temperature: 0.7, or samples: 1"
            )
        if self.samples == 1 and self.temperature is not None:
            raise ValueError(
                f"temperature {self.temperature:g} is for several samples, and samples is 1; give more, e.g. "
                "samples: 5, or set the model's sampling.temperature"
            )
        if self.shots and self.steps != "none":
            raise ValueError(
                f"shots {self.shots} show solved questions, and steps {self.steps} need cases, which have no "
                "solved ones; give shots: 0, or leave out steps"
            )
        if not self.shots and self.shots_seed != type(self).model_fields["shots_seed"].default:
            raise ValueError(
                f"shots_seed {self.shots_seed} chooses solved examples, and shots is 0; give more, e.g. "
                "shots: 2, or leave it out"
            )
        if self.samples > 1 and self.steps != "none":
            raise ValueError(
                f"samples {self.samples} go with a single request, and steps {self.steps} make several; give "
                "samples: 1, or leave out steps"
            )
        return self


class TokenBudget(Spec):
    """A budget of visual tokens, written tokens:8192: as many frames as fit into it at each model."""

    tokens: Positive  # visual tokens of one request

    def __str__(self) -> str:
        return f"tokens:{self.tokens}"


Control = Literal[
    "none", "blind", "captions", "blank", "other_patient", "shuffled_options", "reversed_options", "repeat"
]
"""A change of every request, to test what the answers depend on."""


AnyControl = Annotated[Annotated[Control, Tag(OURS)] | PluginControl, Discriminator(whose)]
"""A control of this package, or one of another package."""


# Controls that do not show the selected frames.
CHANGED_FRAMES: tuple[Control, ...] = ("blind", "captions", "blank", "other_patient")

CASE_SELECTORS = ("uniform", "random", "all")  # kinds that need neither views nor pixels

# Settings of the arms that enter a model's headline, which is their mean (protocol 8.2).
# what levels of a factor are compared with (protocol 17.6)
REFERENCES = {"selector": "clinical", "prompt": "standard", "control": "none"}
HEADLINE = {"budget": "16", "prompt": "standard", "control": "none", "wording": "0"}


class PrimarySpec(Spec):
    """The comparison declared before a run: the scores of two models on one tier.

    It is tested alone, at 5 % (protocol 16.12); all other comparisons share the levels of their families.
    """

    model: str  # name of the first model
    versus: str  # name of the second model
    tier: Annotated[int, Field(ge=1, le=3)]  # tier of the questions

    @model_validator(mode="after")
    def _two(self) -> "PrimarySpec":
        if self.model == self.versus:
            raise ValueError(f"compares {self.model} with itself; name two models")
        return self

    @property
    def words(self) -> str:
        """What is compared, in words."""
        return f"{self.model} against {self.versus}"


class PrimaryQuestionSpec(Spec):
    """The question declared before a run: what a level of a factor does, over all models, on one tier.

    A selector is compared with `clinical`, a prompt with `standard`, no control with a control, the largest
    budget with the smallest (protocol 17.6). It is tested alone, at 5 %, as that of two models is.
    """

    factor: Literal["selector", "budget", "prompt", "control"]  # of which levels are compared
    level: str | None = None  # the level; of budgets none is named
    tier: Annotated[int, Field(ge=1, le=3)]  # tier of the questions
    claim: Literal["difference", "equivalence"] = "difference"  # that they differ, or differ by less than 2

    @model_validator(mode="after")
    def _of_factor(self) -> "PrimaryQuestionSpec":
        if self.factor == "budget" and self.level is not None:
            raise ValueError("compares the largest budget with the smallest; leave out level")
        reference = REFERENCES.get(self.factor)
        if reference and self.level in (None, reference):
            raise ValueError(f"compares a {self.factor} with {reference}; name another as level")
        return self

    @property
    def words(self) -> str:
        """What is compared, in words."""
        if self.factor == "budget":
            return "the largest budget against the smallest, over all models"
        first, second = self.level, REFERENCES[self.factor]
        if self.factor == "control":
            first, second = second, str(first)
        return f"{self.factor} {first} against {second}, over all models"


def _primary_kind(value: object) -> str:
    """Which of the two is declared, by its keys."""
    is_question = "factor" in value if isinstance(value, Mapping) else isinstance(value, PrimaryQuestionSpec)
    return "<question>" if is_question else "<models>"


Primary = Annotated[
    Annotated[PrimarySpec, Tag("<models>")] | Annotated[PrimaryQuestionSpec, Tag("<question>")],
    Discriminator(_primary_kind),
]
"""What is declared before a run: a comparison of two models, or a question over all of them."""


Wording = Annotated[int, Field(ge=0)]
"""Number of a question's wording; 0 is the original."""


Budget = Positive | TokenBudget
"""Limit of the images in a request: a number of frames, or of visual tokens."""


def _scheduler(cluster: object) -> str:
    if isinstance(cluster, Mapping):
        return str(cluster.get("scheduler", "none"))
    return "slurm" if isinstance(cluster, SlurmSpec) else "none"


Cluster = Annotated[
    Annotated[ClusterSpec, Tag("none")] | Annotated[SlurmSpec, Tag("slurm")], Discriminator(_scheduler)
]
"""The cluster that runs the stream; with scheduler: slurm, sweeps can be submitted."""


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
    limit: Positive | None = None  # number of studies to use, in order of their ids; null: all
    store: GivenPath  # folder of shards, questions and completions, shared by sweeps on one dataset
    outputs: GivenPath  # folder of all runs
    group_shared: bool = False  # give the user's group access to store and run
    cluster: Cluster = ClusterSpec()  # one of conf/cluster
    tracker: TrackerSpec = TrackerSpec()  # one of conf/tracker
    stream: StreamSpec = StreamSpec()  # limits while engines run
    statistics: StatisticsSpec = StatisticsSpec()  # options of the statistics
    page: PageSpec = PageSpec()  # content of the page
    mode: Literal["run", "plan"] = "run"  # plan: print the planned requests, and send none
    primary: Primary | None = None  # the one preregistered comparison of the run
    # environment variables that fields of models may name as ${oc.env:NAME}; on the command line only
    allow_env: tuple[str, ...] = ()
    strict: bool = False  # true: stop at the first study that cannot be prepared
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

    @field_validator("subtask", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @field_validator("control", mode="before")
    @classmethod
    def _names(cls, value: object) -> object:
        """Keep the names of controls, which have no options; a config group arrives as a mapping."""
        return tuple(value) if isinstance(value, Mapping) else value

    @field_validator("model", "selector", "budget", "prompt", "control", "wording")
    @classmethod
    def _some_and_distinct(cls, value: tuple[Any, ...]) -> tuple[Any, ...]:
        if not value:
            raise ValueError("needs at least one entry")
        if len(set(map(str, value))) != len(value):
            raise ValueError("names an entry twice")
        return value

    @field_validator("wording", mode="before")
    @classmethod
    def _one_wording(cls, value: object) -> object:
        return (value,) if isinstance(value, int) else value

    @field_validator("budget", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        return tuple(_budget(entry) for entry in (value if isinstance(value, list | tuple) else (value,)))

    @model_validator(mode="after")
    def _of_cases(self) -> "SweepSpec":
        stepwise = [prompt for prompt in self.prompt if prompt.steps != "none"]
        if stepwise and (hidden := [name for name in self.control if name in ("blind", "captions")]):
            raise ValueError(
                f"prompt {stepwise[0].name} writes about images first, and control {hidden[0]} shows none; "
                "leave one of them out"
            )
        if stepwise and not self.dataset.has_cases:
            raise ValueError(
                f"prompt {stepwise[0].name} has steps {stepwise[0].steps}, which need the cases of "
                "dataset=medthinkvqa; leave it out"
            )
        with_gold = [prompt for prompt in self.prompt if prompt.gold != "none"]
        if with_gold and not self.dataset.has_cases:
            raise ValueError(
                f"prompt {with_gold[0].name} includes gold {with_gold[0].gold}, which only the cases of "
                "dataset=medthinkvqa have; leave it out"
            )
        if self.dataset.root is None:
            return self
        if self.dataset.has_pictures and "captions" in self.control:
            raise ValueError(
                f"control captions: the pictures of dataset={self.dataset.benchmark} have no captions; leave "
                "it out, or take control=[none,blind]"
            )
        for selector in self.selector:
            if selector.kind not in CASE_SELECTORS:
                raise ValueError(
                    f"selector {selector.name}: images of a case have no views to route and no common size; "
                    f"choose of kind {', '.join(CASE_SELECTORS)}, e.g. selector=[uniform]"
                )
        return self

    @model_validator(mode="after")
    def _choosing(self) -> "SweepSpec":
        """Refuse controls and budgets that conflict with a reader that chooses its own frames."""
        choosing = [selector.name for selector in self.selector if selector.kind == "self"]
        if not choosing:
            return self
        if strange := [control for control in self.control if control in CHANGED_FRAMES or is_word(control)]:
            raise ValueError(
                f"control {strange[0]} does not show the chosen frames, and with selector {choosing[0]} the "
                f"reader chooses its frames; leave one of them out, or choose of control "
                f"{', '.join(name for name in get_args(Control) if name not in CHANGED_FRAMES)}"
            )
        if counted := [budget for budget in self.budget if isinstance(budget, TokenBudget)]:
            raise ValueError(
                f"budget {counted[0]}: with selector {choosing[0]} a reader asks for a number of frames; "
                "give a number, e.g. 16, or leave that selector out"
            )
        return self

    @model_validator(mode="after")
    def _solved(self) -> "SweepSpec":
        """Refuse solved examples where there is no solved question to show, or no way to show its frames."""
        several = [prompt for prompt in self.prompt if prompt.shots]
        if not several:
            return self
        prompt = f"prompt {several[0].name} shows {several[0].shots} solved examples"
        if any(entry.name == HEADLINE["prompt"] for entry in several):
            raise ValueError(
                f"{prompt}, and headlines are asked with {HEADLINE['prompt']} without any; give the prompt "
                "with examples a name of its own, e.g. prompt=[standard,two_shots]"
            )
        if self.dataset.has_cases:
            raise ValueError(
                f"{prompt}, and the cases of dataset=medthinkvqa have texts that examples would repeat; "
                "leave one of them out"
            )
        if choosing := [selector.name for selector in self.selector if selector.kind == "self"]:
            raise ValueError(
                f"{prompt}, and with selector {choosing[0]} the reader chooses its frames, which "
                "examples do not; leave one of them out"
            )
        return self

    @model_validator(mode="after")
    def _filmed(self) -> "SweepSpec":
        """Refuse videos where there is no cine, no order of its phases, or a model that takes none."""
        as_video = [prompt for prompt in self.prompt if prompt.cine == "video"]
        if not as_video:
            return self
        prompt = f"prompt {as_video[0].name} shows cine as videos"
        if any(entry.name == HEADLINE["prompt"] for entry in as_video):
            raise ValueError(
                f"{prompt}, and headlines are asked with {HEADLINE['prompt']}, which shows frames; give the "
                "prompt with videos a name of its own, e.g. prompt=[standard,video]"
            )
        if self.dataset.has_cases or self.dataset.has_pictures:
            raise ValueError(
                f"{prompt}, and dataset={self.dataset.benchmark} has single images and no cine; leave one of "
                "them out"
            )
        for selector in self.selector:
            if selector.kind == "self" or selector.order == "nested":
                why = "asks for single frames" if selector.kind == "self" else "parts the phases of a slice"
                raise ValueError(
                    f"{prompt}, and selector {selector.name} {why} (it has "
                    f"{'kind self' if selector.kind == 'self' else 'order nested'}); leave one of them out"
                )
        for model in self.model:
            if not (model.simulated or model.engine == "person" or model.takes_video):
                raise ValueError(f"{prompt}, and model {model.name} {model.why_no_video}")
        return self

    @model_validator(mode="after")
    def _sampled(self) -> "SweepSpec":
        """Refuse several samples where a reader cannot answer one request repeatedly with other seeds."""
        several = [prompt for prompt in self.prompt if prompt.samples > 1]
        if not several:
            return self
        prompt = f"prompt {several[0].name} asks for {several[0].samples} samples"
        if choosing := [selector.name for selector in self.selector if selector.kind == "self"]:
            raise ValueError(
                f"{prompt}, and with selector {choosing[0]} each would choose other frames; leave one of "
                "them out"
            )
        for model in self.model:
            if model.engine == "person":
                raise ValueError(
                    f"{prompt}, and {model.name} is a person, who read each question once; leave one of them "
                    "out"
                )
            if model.http is not None and not model.http.sends_sampling:
                raise ValueError(
                    f"{prompt}, with a temperature and a seed for each, and model {model.name} has "
                    "http.sends_sampling: false; set it true if the server takes them, or leave one of them "
                    "out"
                )
        return self

    @model_validator(mode="after")
    def _countable(self) -> "SweepSpec":
        uncounted = [model for model in self.model if not model.counts_tokens]
        counted = [budget for budget in self.budget if isinstance(budget, TokenBudget)]
        if uncounted and counted:
            kinds = {"vllm": "has no processor", "http": "declares no image_tokens", "person": "is a person"}
            why = kinds.get(uncounted[0].engine, "is a simulated reader")
            raise ValueError(
                f"budget {counted[0]} needs a model whose visual tokens are known, and {uncounted[0].name} "
                f"{why}; give a number of frames, or leave that model out"
            )
        return self

    @model_validator(mode="after")
    def _told(self) -> "SweepSpec":
        if "captions" in self.control and self.caption == "none":
            raise ValueError("control captions shows captions alone, and caption is none; give view or full")
        return self

    @model_validator(mode="after")
    def _declared(self) -> "SweepSpec":
        names = [model.name for model in self.model]
        for name in self.compared:
            if name not in names:
                raise ValueError(f"primary names {name!r}, which is none of the models {', '.join(names)}")
        declared_names = {
            name: {entry.name for entry in getattr(self, name)} for name in ("prompt", "selector")
        }
        declared_names |= {
            name: set(map(str, getattr(self, name))) for name in ("budget", "control", "wording")
        }
        if isinstance(self.primary, PrimaryQuestionSpec):
            self._can_answer(self.primary, declared_names[self.primary.factor])
            return self
        for factor, value in HEADLINE.items() if self.primary else ():
            if value not in declared_names[factor]:
                raise ValueError(
                    f"primary compares headlines, which are asked with {factor} {value}, and {factor} is "
                    f"{', '.join(sorted(declared_names[factor]))}; add {value}"
                )
        return self

    def _can_answer(self, primary: PrimaryQuestionSpec, levels: set[str]) -> None:
        """ValueError if the run lacks a level that the declared question needs, or any model to ask."""
        if not self.compared:
            raise ValueError("primary asks a question over all models, and every model is a simulated reader")
        number = sum(level.isdecimal() for level in levels)
        if primary.factor == "budget" and number < 2:
            raise ValueError(f"primary compares budgets, and budget is {', '.join(levels)}; give two numbers")
        needed = {primary.level, REFERENCES[primary.factor]} if primary.factor != "budget" else set()
        lacking = sorted(str(level) for level in needed - levels)
        if lacking:
            raise ValueError(
                f"primary compares {primary.words}, and {primary.factor} is {', '.join(sorted(levels))}; "
                f"add {lacking[0]}"
            )

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
    """Parse a budget: a number of frames, or tokens:N."""
    unit, _, number = str(entry).rpartition(":")
    if isinstance(entry, Mapping | TokenBudget):
        return entry
    if unit not in ("", "tokens") or not number.isdecimal() or int(number) < 1:
        raise ValueError(
            f"{entry!r} is neither a number of frames (16) nor of visual tokens (tokens:8192), 1 or more"
        )
    return {"tokens": int(number)} if unit else int(number)


def parse(tree: Mapping[str, Any]) -> SweepSpec:
    """Validate a composed configuration as a SweepSpec; InputError describes each wrong field."""
    try:
        return SweepSpec.model_validate(tree)
    except ValidationError as error:
        raise InputError(describe(error)) from None
