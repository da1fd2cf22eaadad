"""What a sweep varies: selectors, prompts, budgets and controls, and the arms that are their product."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag

from cardiolens.base.digest import digest_of
from cardiolens.config.base import Positive, Seed, Spec
from cardiolens.config.model import ModelSpec
from cardiolens.config.plugins import BUILT_IN, Options, PluginControl, PluginSelector, is_word, part_of

if TYPE_CHECKING:
    from cardiolens.config.sweep import SweepSpec

OwnSelector = Literal["random", "stratified", "clinical", "uniform", "all", "kcenter", "kmedoids", "self"]

SelectorKind = Annotated[Annotated[OwnSelector, Tag(BUILT_IN)] | PluginSelector, Discriminator(part_of)]


class SelectorSpec(Spec):
    """One protocol that selects frames."""

    name: str  # name in arms and tables
    # the selection rule; docs/protocol/selectors.md; package.name: of another package
    kind: SelectorKind
    seeds: tuple[Seed, ...] = ()  # random and stratified: one arm per seed
    pool: Literal["routed", "sequence"] = "routed"  # candidate frames; not for clinical and stratified
    order: Literal["presented", "nested"] = "presented"  # nested: smaller budgets first, a shared prefix
    options: Options = ()  # of a kind of another package, by name

    def _problems(self) -> Iterator[str]:
        if not self.plugged and (self.kind in ("random", "stratified")) != bool(self.seeds):
            yield "a random or stratified selector needs seeds, e.g. [2026]; no other has any"
        if self.kind in ("clinical", "stratified") and self.pool != "routed":
            yield f"kind {self.kind} has clinical's quotas of the routed views; leave out pool"
        if len(set(self.seeds)) != len(self.seeds):
            yield f"seeds {list(self.seeds)} contain a seed twice; give each once"
        if self.kind == "self" and self.order != "presented":
            yield "kind self has no smaller budgets to show first; leave out order"
        if self.options and not self.plugged:
            yield (
                f"options {[name for name, _ in self.options]} are for kinds of other packages, and "
                f"{self.kind} is built in; leave them out"
            )

    @property
    def plugged(self) -> bool:
        """True if the rule is a part of another package."""
        return is_word(self.kind)

    @property
    def looks_at_pixels(self) -> bool:
        """True if the selector uses features of the frames, which must be computed first."""
        return self.kind in ("kcenter", "kmedoids")


class PromptSpec(Spec):
    """One prompt: how a question is asked."""

    name: str  # name in arms and tables
    # reasoning: the reply may reason before its answer; paper: so, by the paper's points where they are known
    style: Literal["standard", "reasoning", "paper"]
    max_tokens: Positive  # limit of a reply
    # cases only: before it answers, the model describes the images and summarises (self); captions, findings:
    # these gold texts about the images stand in the prompt
    steps: Literal["none", "self", "captions", "findings"] = "none"
    # replies per question, at the model's temperature or 0.7; the most frequent answer counts
    samples: Positive = 1
    asks_back: bool = True  # a reply that cannot be read is quoted to its model, which gives its letters
    shots: Annotated[int, Field(ge=0)] = 0  # solved questions of other patients before each question
    # video: phases of a slice that follow one another are one video, for models that take videos
    cine: Literal["frames", "video"] = "frames"

    @property
    def gold(self) -> Literal["none", "captions", "findings"]:
        """The gold text about the images that the prompt includes."""
        return self.steps if self.steps in ("captions", "findings") else "none"

    @property
    def chained(self) -> bool:
        """Whether the model writes about the images before it answers."""
        return self.steps == "self"

    def _problems(self) -> Iterator[str]:
        if self.shots and self.steps != "none":
            yield (
                f"shots {self.shots} show solved questions, and steps {self.steps} need cases, which have no "
                "solved ones; give shots: 0, or leave out steps"
            )
        if self.samples > 1 and self.chained:
            yield (
                f"samples {self.samples} go with a single request, and steps {self.steps} make several; give "
                "samples: 1, or leave out steps"
            )


# Levels that the other levels of a factor are compared with.
REFERENCES = {"selector": "clinical", "prompt": "standard", "control": "none"}
# Settings of the arms that enter a model's headline, which is their mean (protocol 8.2).
HEADLINE = {"budget": "16", "prompt": "standard", "control": "none", "wording": "0"}


class TokenBudget(Spec):
    """A budget of visual tokens, written tokens:8192: as many frames as fit into it at each model."""

    tokens: Positive  # visual tokens of one request

    def __str__(self) -> str:
        return f"tokens:{self.tokens}"


Wording = Annotated[int, Field(ge=0)]
"""Number of a question's wording; 0 is the original."""


def _budget(entry: object) -> object:
    """Read a budget: a number of frames, or tokens:N."""
    unit, _, number = str(entry).rpartition(":")
    if isinstance(entry, Mapping | TokenBudget):
        return entry
    if unit not in ("", "tokens") or not number.isdecimal() or int(number) < 1:
        raise ValueError(
            f"{entry!r} is neither a number of frames (16) nor of visual tokens (tokens:8192), 1 or more"
        )
    return {"tokens": int(number)} if unit else int(number)


Budget = Annotated[Positive | TokenBudget, BeforeValidator(_budget)]
"""Limit of the images in a request: a number of frames, or of visual tokens."""


Control = Literal[
    "none",
    "blind",
    "captions",
    "blank",
    "other_patient",
    "shuffled_options",
    "reversed_options",
    "repeat",
    "lesion",
]
"""A change of every request, to test what the answers depend on."""

AnyControl = Annotated[Annotated[Control, Tag(BUILT_IN)] | PluginControl, Discriminator(part_of)]
"""A control of this package, or one of another package."""

# Controls that do not show the selected frames.
CHANGED_FRAMES: tuple[Control, ...] = ("blind", "captions", "blank", "other_patient")


class PrimarySpec(Spec):
    """The comparison declared before a run: the scores of two models on one tier.

    It is tested alone, at 5 %; all other comparisons share the levels of their families.
    """

    model: str  # name of the first model
    versus: str  # name of the second model
    tier: Annotated[int, Field(ge=1, le=3)]  # tier of the questions

    def _problems(self) -> Iterator[str]:
        if self.model == self.versus:
            yield f"compares {self.model} with itself; name two models"

    @property
    def words(self) -> str:
        """What is compared, in words."""
        return f"{self.model} against {self.versus}"


class PrimaryQuestionSpec(Spec):
    """The question declared before a run: what a level of a factor does, over all models, on one tier.

    A selector is compared with `clinical`, a prompt with `standard`, no control with a control, the largest
    budget with the smallest. It is tested alone, at 5 %, as that of two models is.
    """

    factor: Literal["selector", "budget", "prompt", "control"]  # its levels are compared
    level: str | None = None  # the level; of budgets none is named
    tier: Annotated[int, Field(ge=1, le=3)]  # tier of the questions
    claim: Literal["difference", "equivalence"] = "difference"  # that they differ, or differ by less than 2

    def _problems(self) -> Iterator[str]:
        if self.factor == "budget" and self.level is not None:
            yield "compares the largest budget with the smallest; leave out level"
        reference = REFERENCES.get(self.factor)
        if reference and self.level in (None, reference):
            yield f"compares a {self.factor} with {reference}; name another as level"

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


@dataclass(frozen=True, slots=True)
class Arm:
    """One model with one selector (and seed), budget, prompt, wording and control."""

    model: ModelSpec
    selector: SelectorSpec
    seed: int | None  # seed of a random or stratified selector
    budget: Budget
    prompt: PromptSpec
    control: AnyControl = "none"
    wording: int = 0

    @property
    def selector_name(self) -> str:
        return self.selector.name if self.seed is None else f"{self.selector.name}@{self.seed}"

    @property
    def label(self) -> str:
        """Readable name, unique within a sweep."""
        wording = f"/wording{self.wording}" if self.wording else ""
        control = "" if self.control == "none" else f"/{self.control}"
        return f"{self.model.name}/{self.selector_name}/{self.budget}/{self.prompt.name}{wording}{control}"

    @property
    def arm_id(self) -> str:
        """The label and eight hex digits of a digest of every option that decides the requests.

        Defaults count by their value: a changed default asks something else.
        """
        parts = [
            {name: value for name, value in self.model.deciding().items() if name != "name"},
            self.selector.model_dump(mode="json", exclude={"seeds"}),
            self.seed,
            self.budget.model_dump() if isinstance(self.budget, TokenBudget) else self.budget,
            self.prompt.model_dump(mode="json"),
            self.wording,
        ]
        return f"{self.label.replace('/', '-').replace(':', '')}-{digest_of(parts)[:8]}"


def arms(spec: "SweepSpec") -> tuple[Arm, ...]:
    """Return every arm of a sweep, model by model."""
    seeded = [(selector, seed) for selector in spec.selector for seed in selector.seeds or (None,)]
    return tuple(
        Arm(model, selector, seed, budget, prompt, control, wording)
        for model, (selector, seed), budget, prompt, wording, control in product(
            spec.model, seeded, spec.budget, spec.prompt, spec.wording, spec.control
        )
    )


def arms_asking_back(spec: "SweepSpec") -> frozenset[str]:
    """Return the ids of the arms that ask back if a reply cannot be read.

    A person cannot be asked back, several samples have their vote, and structured decoding is read as it is.
    """
    if spec.answer_format == "choice":
        return frozenset()
    return frozenset(
        arm.arm_id
        for arm in arms(spec)
        if arm.prompt.asks_back and arm.prompt.samples == 1 and arm.model.engine != "person"
    )
