"""What is declared before a run: a comparison of two models, or a question over all of them."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from cardiolens.config.base import Spec
from cardiolens.config.sweep_factors import REFERENCES


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
