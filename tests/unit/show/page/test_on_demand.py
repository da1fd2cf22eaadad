"""Cases are those of the tables, read when they are asked for or sampled, and nothing else is answered."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from page_run import finished, small_spec

from cardiolens.base.errors import InputError
from cardiolens.show.page.case_viewer import viewer_server
from cardiolens.show.page.case_viewer.item_sources import Sources, open_sources
from cardiolens.show.page.case_viewer.viewer_server import MOST_WORDS, Viewer, sampled
from cardiolens.storage import schemas, tables
from cardiolens.storage.places import Run


@pytest.fixture(scope="module")
def run(root: Path) -> Run:
    return finished(small_spec(root, "demand"))


@pytest.fixture(scope="module")
def sources(run: Run) -> Sources:
    return open_sources(run, [run])


def qa_ids(sources: Sources) -> list[str]:
    found: list[str] = sources.questions["qa_id"].to_pylist()
    return found


def test_endings_of_arms_are_those_of_the_verdicts(run: Run, sources: Sources) -> None:
    verdicts = tables.read(run.verdicts, schemas.VERDICTS).to_pylist()
    told = {
        (row["arm_id"], row["qa_id"]): "r" if row["correct"] else "w"
        for row in verdicts
        if row["channel"] != "text" and row["status"] == "judged" and row["parse_status"] == "ok"
    }
    for at, arm in enumerate(sources.arms):
        letters = sources.endings(at)
        shown = dict(zip(qa_ids(sources), letters, strict=True))
        assert {qa_id: letter for qa_id, letter in shown.items() if letter in "rw"} == {
            qa_id: letter for (own, qa_id), letter in told.items() if own == arm
        }
    assert told


def test_a_case_is_read_from_its_own_parts_alone(run: Run, sources: Sources) -> None:
    """The other model's requests and replies may be gone: nothing of them is opened."""
    viewer = Viewer(sources)
    arm = next(at for at, entry in enumerate(sources.header.arms) if entry.model == "noisy")
    case = viewer.content(f"cases/0/{arm}.js")
    assert isinstance(case, dict)
    (qa_id,) = case["cases"]
    assert qa_id == qa_ids(sources)[0]
    kept = run.requests("collapse")
    hidden = kept.rename(kept.with_name("elsewhere"))
    try:
        assert viewer.content(f"cases/0/{arm}.js") == case
    finally:
        hidden.rename(kept)


def test_of_several_cases_none_is_read_under_the_arm_of_another(sources: Sources) -> None:
    first, second = (at for at, arm in enumerate(sources.header.arms) if arm.model == "noisy")
    keys = [(0, first), (1, second)]
    cases = sources.cases(keys)
    wanted = [(sources.arms[arm], qa_ids(sources)[question]) for question, arm in keys]
    assert sorted((case["arm_id"], case["qa_id"]) for case in cases) == sorted(wanted)
    assert all(len(case["verdicts"]) == 1 and case["reply"] for case in cases)


def test_words_find_the_replies_that_hold_them(run: Run, sources: Sources) -> None:
    viewer = Viewer(sources)
    said = {row["qa_id"]: row for row in _replies(run, sources, 0)}
    for words in ("ANSWER: a", "lv_size", "no such words"):
        found = viewer.content("said/0.js", words)
        wanted = [
            at for at, qa_id in enumerate(qa_ids(sources)) if words.lower() in said[qa_id]["text"].lower()
        ]
        assert found == wanted
    assert viewer.content("said/0.js", "x" * (MOST_WORDS + 1)) is None


def _replies(run: Run, sources: Sources, arm: int) -> list[dict[str, Any]]:
    model = sources.header.arms[arm].model
    requests = tables.read(run.requests(model), schemas.REQUESTS, ("arm_id", "qa_id", "request_key"))
    requests = requests.filter(pc.equal(requests["arm_id"], sources.arms[arm]))
    key = sources.header.manifests[0]["models"][model]["model_key"]
    folder = sources.header.specs[0].store / "completions" / key
    said = tables.read(folder, schemas.COMPLETIONS, ("request_key", "text"))
    joined: list[dict[str, Any]] = requests.join(said, "request_key").to_pylist()
    return joined


@pytest.mark.parametrize(
    "path",
    [
        *("", "x", "cases", "cases/0.js", "cases/0/0", "cases/0/.js", "cases/0/0-1-2.js", "cases/99999/0.js"),
        *("cases/0/99.js", "cases/-1/0.js", "endings/99.js", "endings/..js", "said/0.js", "cases/²/0.js"),
        *(f"cases/{'9' * 5000}/0.js", "../manifest.json", "endings/0/../0.js"),
    ],
)
def test_no_other_path_is_answered(sources: Sources, path: str) -> None:
    assert Viewer(sources).script(path) is None


def test_a_part_that_is_not_whole_is_told_on_the_page(run: Run, tmp_path: Path) -> None:
    broken = Run(tmp_path / "run")
    for part in tables.parts(run.verdicts):
        broken.verdicts.mkdir(parents=True)
        (broken.verdicts / part.name).write_bytes(part.read_bytes()[:-20])
    with pytest.raises(InputError, match="not a whole Parquet file"):
        tables.query(broken.verdicts, schemas.VERDICTS, ("qa_id",), pc.field("arm_id") == "x")
    with pytest.raises(InputError, match="its columns are not those"):
        list(tables.scan(run.verdicts, schemas.SCORES, ("metric",)))
    told = Viewer(replace(open_sources(run, [run]), run=broken)).script("endings/0.js")
    assert told is not None
    assert told.startswith('cardiolens.refuse("endings/0.js",')
    assert "not a whole Parquet file" in json.loads(told.partition(",")[2].removesuffix(");\n"))


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
