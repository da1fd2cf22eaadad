"""Arms: the product of a sweep's models, selectors, budgets, prompts and controls."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from cardiolens.config.http import SERVING as HTTP_SERVING
from cardiolens.config.model import SERVING, ModelSpec
from cardiolens.config.sweep import Budget, Control, PromptSpec, SelectorSpec, SweepSpec, TokenBudget
from cardiolens.digest import digest_of


@dataclass(frozen=True, slots=True)
class Arm:
    """One model with one selector (and seed), budget, prompt and control."""

    model: ModelSpec
    selector: SelectorSpec
    seed: int | None  # of a random selector
    budget: Budget
    prompt: PromptSpec
    control: Control = "none"

    @property
    def selector_name(self) -> str:
        return self.selector.name if self.seed is None else f"{self.selector.name}@{self.seed}"

    @property
    def label(self) -> str:
        """A readable name, unique within a sweep."""
        control = "" if self.control == "none" else f"/{self.control}"
        return f"{self.model.name}/{self.selector_name}/{self.budget}/{self.prompt.name}{control}"

    @property
    def budget_value(self) -> int | str:
        """The budget for a chart: a number of frames, or the text of the configuration."""
        return self.budget if isinstance(self.budget, int) else str(self.budget)

    @property
    def arm_id(self) -> str:
        """The label and eight hex digits over every option that decides the requests.

        Model options at their defaults are not digested, so adding an option changes no existing id.
        """
        excluded: dict[str, Any] = {**dict.fromkeys(("name", *SERVING), True), "http": set(HTTP_SERVING)}
        deciding = [
            self.model.model_dump(mode="json", exclude=excluded, exclude_defaults=True),
            self.selector.model_dump(mode="json", exclude={"seeds"}),
            self.seed,
            self.budget.model_dump() if isinstance(self.budget, TokenBudget) else self.budget,
            self.prompt.model_dump(mode="json"),
        ]
        return f"{self.label.replace('/', '-').replace(':', '')}-{digest_of(deciding)[:8]}"


def arms(spec: SweepSpec) -> tuple[Arm, ...]:
    """Every arm of a sweep, model by model."""
    return tuple(
        Arm(model, selector, seed, budget, prompt, control)
        for model, (selector, seed), budget, prompt, control in product(
            spec.model, list(_seeded(spec)), spec.budget, spec.prompt, spec.control
        )
    )


def _seeded(spec: SweepSpec) -> Iterator[tuple[SelectorSpec, int | None]]:
    for selector in spec.selector:
        for seed in selector.seeds or (None,):
            yield selector, seed
