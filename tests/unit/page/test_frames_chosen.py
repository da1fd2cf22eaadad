"""What the page says of readers that chose their frames, against what was seen."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from small_cohort import make_cohort, reader, sweep_spec, swept

from cardiolens.engine.ask import Ask, Pictures, Reply
from cardiolens.engine.readers import Reader
from cardiolens.page.choosing import ChoiceCounts, choices_of

SELF = {"name": "self", "kind": "self"}
CLINICAL = {"name": "clinical", "kind": "clinical"}


class Asking(Reader):
    """Reader that asks for some of the names on offer, or for others, and answers A."""

    def __init__(self, choose: Callable[[list[str]], list[str]]) -> None:
        self._choose = choose

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        text = "ANSWER: A"
        if ask.answer_type == "frames":
            frames = json.loads(ask.constraint.schema)["properties"]["frames"]
            text = json.dumps({"frames": self._choose(frames["items"]["enum"])})
        return Reply(text=text, finish_reason="stop", prompt_tokens=1, output_tokens=1)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_cohort(tmp_path_factory.mktemp("page_choosing"), 2)


def counted(
    root: Path, name: str, choose: Callable[[list[str]], list[str]], *selectors
) -> list[ChoiceCounts]:
    model = reader("uniform") | {"name": name}  # a reader of its own, so that no completion is another's
    spec = sweep_spec(root, model, selector=list(selectors) or [SELF], budget=[4], subtask=["C10"], name=name)
    planned, _ = swept(spec, Asking(choose))
    return list(choices_of([planned.run], [{"models": dict.fromkeys(planned.identities)}]))


def test_names_that_are_no_frame_are_counted_beside_the_frames_shown(root):
    (found,) = counted(root, "mixed", lambda names: [*names[:2], "no such frame"])
    assert (found.asked, found.unanswered) == (2, 0)
    assert (found.requests, found.refused, found.frames) == (2, 2, 4)


def test_a_reader_that_takes_all_at_once_asks_once(root):
    (found,) = counted(root, "greedy", lambda names: names[:4], SELF, CLINICAL)
    assert "self" in found.arm_id
    assert (found.requests, found.refused, found.frames) == (1, 0, 4)


def test_a_reader_that_never_asks_legally_has_no_mean_of_frames(root):
    (found,) = counted(root, "illegal", lambda names: ["everything"])
    assert (found.asked, found.unanswered, found.requests) == (2, 2, 2)
    assert math.isnan(found.frames)


def test_runs_of_other_selectors_have_none(root):
    assert counted(root, "flat", lambda names: names, CLINICAL) == []
