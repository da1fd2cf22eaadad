"""The sample of a portable viewer: bounded whatever the number of arms, the same each time, told in words."""

from collections import Counter
from dataclasses import replace

import pytest
from page_run import finished, small_spec
from small_cohort import make_cohort

from cardiolens.show.page.case_viewer import viewer_server
from cardiolens.show.page.case_viewer.item_sources import Sources, open_sources
from cardiolens.show.page.case_viewer.viewer_server import sampled


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    run = finished(small_spec(make_cohort(tmp_path_factory.mktemp("sampled"), 4), "sampled"))
    return open_sources(run, [run])


@pytest.mark.parametrize("most", [20, 40, 60])
def test_a_sample_is_bounded_and_has_every_answer_of_as_many_questions_of_each_subtask(
    sources: Sources, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    _, whole, _ = sampled(sources)
    monkeypatch.setattr(viewer_server, "MOST_ANSWERS", most)
    held, letters, words = sampled(sources)
    assert most - len(sources.arms) < (letters != ord(" ")).sum() <= most
    places = {qa_id: at for at, qa_id in enumerate(sources.questions["qa_id"].to_pylist())}
    at = [places[qa_id] for qa_id in held.questions["qa_id"].to_pylist()]
    assert (letters == whole[at]).all()
    by_subtask = Counter(held.questions["subtask"].to_pylist())
    there = Counter(sources.questions["subtask"].to_pylist())
    assert all(
        max(by_subtask.values()) - 1 <= by_subtask[name] or by_subtask[name] == there[name] for name in there
    )
    assert f"A sample: {len(at)} of {len(whole)} questions" in words
    again, _, _ = sampled(sources)
    assert again.questions.equals(held.questions)


def test_a_question_stands_under_each_arm_that_was_asked_however_many_there_are(
    sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(viewer_server, "MOST_ANSWERS", 1)
    held, letters, _ = sampled(sources)
    assert letters.shape == (1, len(sources.arms))
    assert held.qa_id(0) in set(sources.questions["qa_id"].to_pylist())


def test_a_small_run_is_held_whole(sources: Sources) -> None:
    held, letters, words = sampled(sources)
    assert held == replace(sources)
    assert [column.tobytes().decode() for column in letters.T] == [
        sources.endings(at) for at in range(len(sources.arms))
    ]
    assert words.startswith("All ")
