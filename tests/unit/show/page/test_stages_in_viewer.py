"""The case viewer shows all that a reader of a chain was asked and shown, in order."""

from typing import Any

import pytest
from page_run import finished, small_spec
from small_cohort import make_cohort, reader

from cardiolens.show.page.case_viewer.cases import question_cases
from cardiolens.show.page.case_viewer.item_sources import Sources, open_sources
from cardiolens.show.page.case_viewer.study_layout import evidence_index
from cardiolens.storage import schemas


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    root = make_cohort(tmp_path_factory.mktemp("stages"), 1)
    selectors = [{"name": "self", "kind": "self"}, {"name": "clinical", "kind": "clinical"}]
    chosen: dict[str, Any] = {"selector": selectors, "budget": [3], "subtask": ["C10", "R-CINE"]}
    run = finished(
        small_spec(root, "stages", model=[reader("oracle", chooses="illegal")], control=["none"], **chosen)
    )
    return open_sources(run, [run])


@pytest.mark.parametrize("private", [True, False])
def test_frames_prompts_and_replies_stand_in_order(sources: Sources, private: bool) -> None:
    everything = [(at, arm) for at in range(sources.questions.num_rows) for arm in range(len(sources.arms))]
    by_question = question_cases(sources, everything, evidence_index(sources), private=private)
    for shown in dict(by_question).values():
        (arms,) = shown["cases"].values()
        for at, case in arms.items():
            prompt, frames = shown["texts"][case["prompt"]], shown["frames"][case["frames"]]
            assert prompt.count(schemas.FRAME) == len(frames)
            if sources.header.arms[at].selector != "self":
                assert "[reply to request" not in prompt
                continue
            first, wrong, second, right, answer = (
                prompt.index(words)
                for words in (
                    "This is request 1 of 2",
                    "cine_xyz slice 0 phase 0",
                    "This is request 2 of 2",
                    "[reply to request 2]",
                    "The 3 frames above",
                )
            )
            assert first < wrong < second < right < answer
            assert len(frames) == 3
            assert case["status"] == "planned"
