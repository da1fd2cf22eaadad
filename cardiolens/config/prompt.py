"""Prompts as a sweep's configuration names them: style, limits, steps, samples and solved examples."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from cardiolens.config.base import Positive, Seed, Spec


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
    asks_back: bool = True  # a reply that cannot be read is quoted to its model, which gives its letters
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
