"""Arms of a sweep: the product of its lists."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from cardiolens.base.digest import digest_of
from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.config.sweep_factors import AnyControl, Budget, PromptSpec, SelectorSpec, TokenBudget


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
    def budget_value(self) -> int | str:
        """The budget as charts show it: a number of frames, or the text tokens:N."""
        return self.budget if isinstance(self.budget, int) else str(self.budget)

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


def arms(spec: SweepSpec) -> tuple[Arm, ...]:
    """Return every arm of a sweep, model by model."""
    return tuple(
        Arm(model, selector, seed, budget, prompt, control, wording)
        for model, (selector, seed), budget, prompt, wording, control in product(
            spec.model, list(_seeded(spec)), spec.budget, spec.prompt, spec.wording, spec.control
        )
    )


def arms_asking_back(spec: SweepSpec) -> frozenset[str]:
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


def _seeded(spec: SweepSpec) -> Iterator[tuple[SelectorSpec, int | None]]:
    for selector in spec.selector:
        for seed in selector.seeds or (None,):
            yield selector, seed
