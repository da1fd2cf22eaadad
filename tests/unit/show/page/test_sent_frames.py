"""What was shown of a question's evidence, and what each selector sent, against definition and requests."""

import json
from pathlib import Path
from typing import Any

import pytest
from page_run import finished, full_spec, small_spec
from scripted_engine import CHOOSES, illegally
from small_cohort import VIEWS, make_cohort, reader

from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.show.page.case_viewer.item_sources import Sources, open_sources
from cardiolens.show.page.case_viewer.study_layout import shown_letter, shown_under
from cardiolens.show.page.case_viewer.viewer_server import Viewer
from cardiolens.storage import schemas, tables

SLICES = {
    "L01": [{"volume_id": "lge_sax", "slice": 0}, {"volume_id": "lge_sax", "slice": 2}],
    "C06": [{"volume_id": "cine_sax", "slice": 1}],
    "C10": [{"volume_id": "cine_4ch", "slice": 0, "phases": [2]}],
    "P01": [{"volume_id": "perf_sax", "slice": 1, "phases": [4, 5]}],
}
TEMPORAL = {"C06", "C10"}  # by the catalogue: of motion and function


def questions_with_slices(path: Path) -> None:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        line.update({"evidence_slices": SLICES[line["subtask"]]} if line["subtask"] in SLICES else {})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    root = make_cohort(tmp_path_factory.mktemp("sent"), 3)
    questions_with_slices(root / "questions.jsonl")
    changes: dict[str, Any] = {
        "subtask": [*SLICES, "C12"],
        "budget": [2, 8],
        "prompt": [{"name": "standard", "style": "standard", "max_tokens": 64}],
        "control": ["none", "blind", "other_patient", "blank"],
        "model": [reader("noisy", error=0.3)],
        "statistics": {"min_n": 1, "resamples": 20, "seed": 7},
    }
    run = finished(full_spec(root, **changes))
    return open_sources(run, [run])


def expected_letter(sources: Sources, request: dict[str, Any]) -> str:
    """The definition of a frame that shows it: slices and phases of the evidence, one frame at a time."""
    slices = SLICES.get(request["subtask"])
    if not slices:
        return "?"
    seen = 0
    for one in slices:
        n_phases = VIEWS[one["volume_id"]][1]
        telling = one.get("phases") or list(range(n_phases))
        frames = [
            (frame["volume_id"], frame["idx"])
            for frame in request["frames"]
            if request["frames_study_id"] == request["study_id"] and "blank" not in request["flags"]
        ]
        sent = [p for p in telling if (one["volume_id"], one["slice"] * n_phases + p) in frames]
        needed = 2 if request["subtask"] in TEMPORAL and len(telling) > 1 else 1
        seen += len(sent) >= needed
    return "n" if seen == 0 else "s" if seen == len(slices) else "p"


def test_letters_are_those_of_the_definition(sources: Sources) -> None:
    asked: set[str] = set()
    for at, arm in enumerate(sources.header.arms):
        letters = shown_under(sources, at)
        rows = tables.read(sources.run.requests(arm.model), schemas.REQUESTS).to_pylist()
        wanted = {row["qa_id"]: expected_letter(sources, row) for row in rows if row["arm_id"] == arm.arm_id}
        given = {sources.qa_id(place): letter for place, letter in enumerate(letters)}
        assert {qa_id: given[qa_id] for qa_id in wanted} == wanted
        asked |= set(wanted.values())
        if arm.control != "none":
            assert not {"s", "p"} & set(letters)
    assert asked == {"s", "p", "n", "?"}


def test_subtasks_on_motion_are_the_catalogues() -> None:
    catalogue = load_catalogue("openprotocol-1")
    assert {name for name in SLICES if catalogue[name].temporal} == TEMPORAL


def test_what_was_planned_and_not_sent_showed_nothing(sources: Sources) -> None:
    place = sources.questions["subtask"].to_pylist().index("C06")
    study = sources.studies[sources.study[place]]
    frames = [{"volume_id": "cine_sax", "idx": idx} for idx in range(18)]
    request = {"frames_study_id": study, "frames": frames, "flags": [], "stages": []}
    for status, letter in (("planned", "s"), ("overflow", "n")):
        assert shown_letter(sources, place, request | {"status": status}) == letter


def test_lanes_are_the_requests_of_each_selector_at_each_budget(sources: Sources) -> None:
    viewer = Viewer(sources)
    why = {"other_patient": "frames of another patient", "blank": "every frame was shown black"}
    for control in ("none", "other_patient", "blank", "blind"):
        arm = next(at for at, one in enumerate(sources.header.arms) if one.control == control)
        own = sources.header.arms[arm]
        lanes = viewer.content(f"sent/0/{arm}.js")
        assert isinstance(lanes, list)
        rows = tables.read(sources.run.requests(own.model), schemas.REQUESTS).to_pylist()
        by_arm = {row["arm_id"]: row for row in rows if row["qa_id"] == sources.qa_id(0)}
        assert {(lane["selector"], lane["budget"]) for lane in lanes} == (
            {(name, k) for name in ("clinical", "random@2026") for k in ("2", "8")}
            if control != "blind"
            else {(one.selector, one.budget) for one in sources.header.arms if one.control == "blind"}
        )
        for lane in lanes:
            row = by_arm[sources.arms[lane["arm"]]]
            frames = [[frame["volume_id"], frame["idx"]] for frame in row["frames"] or []]
            assert lane["frames"] == (frames if control == "none" else [])
            assert lane["why"] == why.get(control, "")


def test_a_case_says_whether_its_evidence_was_shown(sources: Sources) -> None:
    viewer = Viewer(sources)
    for arm in range(0, len(sources.arms), 5):
        letters = viewer.content(f"shown/{arm}.js")
        assert isinstance(letters, str)
        for question in range(0, sources.questions.num_rows, 3):
            case = viewer.content(f"cases/{question}/{arm}.js")
            assert isinstance(case, dict)
            for arms in case["cases"].values():
                assert arms[arm]["shown"] == letters[question]


def test_a_chain_sends_the_frames_of_all_its_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CHOOSES, illegally)
    root = make_cohort(tmp_path, 1)
    selectors = [{"name": "self", "kind": "self"}]
    chosen: dict[str, Any] = {"selector": selectors, "budget": [3], "subtask": ["C10"], "control": ["none"]}
    run = finished(small_spec(root, "chain", model=[reader("oracle")], **chosen))
    opened = open_sources(run, [run])
    (lane, *_) = Viewer(opened).content("sent/0/0.js")  # type: ignore[misc]
    stages = tables.read(run.seen, schemas.SEEN).to_pylist()
    wanted = {(frame["volume_id"], frame["idx"]) for stage in stages for frame in stage["frames"] or ()}
    assert {tuple(frame) for frame in lane["frames"]} == wanted
    assert len(wanted) == 3
