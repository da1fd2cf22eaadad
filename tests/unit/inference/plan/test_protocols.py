"""Every selector and kind of budget in a plan; what cannot be planned is refused in words."""

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from small_cohort import reader, requests_of

from cardiolens.base.errors import InputError
from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.config.sweep_factors import PromptSpec
from cardiolens.inference.models.chat import Chat
from cardiolens.inference.models.token_counts import Rendering
from cardiolens.inference.plan.plan import plan
from cardiolens.inference.plan.request import ReplyForm
from cardiolens.protocol.select.choose import choose
from cardiolens.protocol.select.feature_store import missing_parts, read_features, write_features
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.protocol.tasks.legal import constraint_of
from cardiolens.study.shards import read_volumes
from cardiolens.study.structure import structures

Sweep = Callable[..., SweepSpec]
EVERY = "selector=[clinical,random@7,uniform,all,kcenter,kmedoids]"


def frames_by_arm(spec: SweepSpec) -> dict[str, list[tuple[str, int]]]:
    planned = plan(spec)
    names = {arm.arm_id: f"{arm.selector_name}/{arm.budget}" for arm in planned.arms}
    return {
        names[row["arm_id"]]: [(frame["volume_id"], frame["idx"]) for frame in row["frames"]]
        for row in requests_of(planned)
    }


def test_every_selector_plans_its_own_frames(sweep_of: Sweep):
    spec = sweep_of("model=[uniform]", "subtask=[C10]", "budget=[3,5]", EVERY)
    volumes = read_volumes(spec.store)
    (part,) = missing_parts(spec.store, volumes)
    write_features(spec.store, part)
    assert missing_parts(spec.store, volumes) == []
    found = frames_by_arm(spec)
    assert {name: len(frames) for name, frames in found.items() if not name.startswith("all")} == {
        f"{selector}/{budget}": budget
        for selector in ("clinical", "random@7", "uniform", "kcenter", "kmedoids")
        for budget in (3, 5)
    }
    assert found["all/3"] == found["all/5"]
    assert plan(spec).most_frames == {"uniform": len(found["all/3"])}
    study, features = structures(volumes)["PH-NORMAL"], read_features(spec.store, volumes)
    asked = load_catalogue("openprotocol-1")["C10"]
    for selector in spec.selector:
        if selector.looks_at_pixels:
            chosen = choose(selector, None, study, asked, 5, features=features)
            assert found[f"{selector.name}/5"] == [(frame.volume_id, frame.idx) for frame in chosen.frames]


def test_a_data_driven_selector_without_features_is_refused(sweep_of: Sweep):
    with pytest.raises(InputError, match=r"features of the frames are missing .* prepare again"):
        plan(sweep_of("model=[uniform]", "subtask=[C10]", "selector=[kcenter]"))


def test_a_budget_in_tokens_shows_what_fits_the_model_s_own_processor(sweep_of: Sweep):
    planned = plan(sweep_of("model=[tiny]", "subtask=[C10]", "budget=[tokens:100]"))
    (row,) = requests_of(planned)
    folder = planned.identities["tiny"].folder
    assert folder is not None
    height, width = planned.volumes["height"][0].as_py(), planned.volumes["width"][0].as_py()
    tokens = Chat(folder).image_tokens(Rendering(planned.spec.model[0].long_side).size(height, width))
    assert len(row["frames"]) == 100 // tokens > 1


@pytest.mark.parametrize(
    ("given", "formats"),
    [
        ("letters", {"standard": "letters", "reasoning": "letters"}),
        ("json", {"standard": "json", "reasoning": "json"}),
        ("choice", {"standard": "choice", "reasoning": "last_line"}),
    ],
)
def test_how_a_reply_is_bound_follows_the_answer_format_and_the_prompt(sweep_of: Sweep, given, formats):
    words = ["model=[uniform]", "subtask=[C10,R-CINE]", "budget=[2]", "prompt=[standard,reasoning]"]
    planned = plan(sweep_of(*words, f"answer_format={given}"))
    asked = {(row["subtask"], name): row for name in formats for row in requests_of(planned, prompt=name)}
    assert {name: asked["C10", name]["answer_format"] for name in formats} == formats
    assert {asked["R-CINE", name]["answer_format"] for name in formats} == {"json"}
    closing = '{"answer": ["<letter>"]}' if given == "json" else "ANSWER: <letter>"
    assert all(closing in asked["C10", name]["prompt"] for name in formats)


@pytest.mark.parametrize(
    ("reply", "fits"),
    [
        ("The wall moves.\nANSWER: A, C", True),
        ("ANSWER: A", False),
        ("ANSWER: A\nBut\nANSWER: B", True),
        ("No.\nANSWER: D", True),
        ("No.\nANSWER: A, D", False),
        ("No answer.", False),
    ],
)
def test_a_bound_last_line_holds_a_legal_reply(reply, fits):
    held = constraint_of("last_line", "multi", ("A", "B", "C", "D"), ("D",))
    assert bool(re.fullmatch(held.pattern, reply)) == fits


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
