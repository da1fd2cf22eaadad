"""A model that thinks has the room that its style needs under every prompt of that style, and in steps."""

from types import SimpleNamespace
from typing import Any

import pytest
from small_cohort import reader

from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep_factors import PromptSpec
from cardiolens.inference.plan.request import ReplyForm

QUESTION: Any = SimpleNamespace(answer_type="single")
REPORT: Any = SimpleNamespace(answer_type="report")


def form_of(**max_tokens: int) -> ReplyForm:
    model = ModelSpec(**reader("constant", answer="A") | {"max_tokens": max_tokens})
    return ReplyForm(SimpleNamespace(answer_format="letters"), model)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("prompt", "limit"),
    [
        ({"name": "standard", "style": "standard"}, 4096),
        ({"name": "two_shots", "style": "standard", "shots": 2}, 4096),
        ({"name": "paper", "style": "paper"}, 6144),
        ({"name": "short", "style": "reasoning"}, 80),
    ],
)
def test_a_limit_is_of_the_prompt_else_at_least_of_its_style(prompt: dict[str, Any], limit: int):
    thinking = form_of(standard=4096, reasoning=6144, short=80, report=8192)
    spec = PromptSpec(max_tokens=64, **prompt)
    assert thinking.max_tokens(QUESTION, spec) == limit
    assert thinking.max_tokens(REPORT, spec) == 8192
    assert form_of().max_tokens(QUESTION, spec) == 64


def test_a_style_never_lowers_what_a_prompt_needs():
    terse = form_of(standard=16)
    needs = PromptSpec(name="direct", style="standard", max_tokens=256, steps="self")
    assert (terse.max_tokens(QUESTION, needs), terse.step_max_tokens(needs)) == (256, 512)
    assert form_of(standard=4096).step_max_tokens(needs) == 4096
    assert form_of(standard=4096, step=48).step_max_tokens(needs) == 48
