"""Masks as a source of draft questions: true, resumed, and beside reports."""

import json
from pathlib import Path
from typing import Any

import pytest
from report_folders import lines

from cardiolens.base.errors import InputError
from cardiolens.commands.questions import second_of
from cardiolens.config.command_words import read_words
from cardiolens.config.curation_specs import QuestionsSpec
from cardiolens.curation.questions.draft_questions import questions
from cardiolens.curation.questions.from_masks import joined
from cardiolens.phantom.roster import catalogue
from tests.unit.curation.masks.hearts import folder_of, heart
from tests.unit.questions_file import read_questions

REPORTS = {
    "agrees": "Findings: LVEF 62 %.",
    "contradicts": "Findings: Severely reduced LV systolic function, LVEF 20 %.",
    "silent": "Findings: No pericardial effusion.",
}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hearts of normal function with reports that say the same, another thing, or nothing of it."""
    root = tmp_path_factory.mktemp("both")
    (root / "reports").mkdir()
    for name, text in REPORTS.items():
        folder_of(root / "studies" / name, heart(), heart(radius=lambda z: 14.0, wall=lambda _: 14.0))
        (root / "reports" / f"{name}.txt").write_text(text)
        manifest = root / "studies" / name / "study.json"
        told = json.loads(manifest.read_text())
        manifest.write_text(json.dumps(told | {"study_id": name, "patient_id": name}))
    words = [f"{one}={root}/{one}" for one in ("reports", "studies", "out")]
    questions(read_words(QuestionsSpec, [*words, f"masks={root}/studies", "labels=acdc"]))
    return root / "out"


def test_masks_alone_are_drafted_once_with_evidence_and_reasons(
    both: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """That what they tell is true: masks/test_mask_findings.py."""
    words = [f"masks={both.parent}/studies", "labels=acdc", f"out={tmp_path}/out"]
    assert questions(read_words(QuestionsSpec, words)) == 0
    made = lines(tmp_path / "out" / "questions.jsonl")
    assert {one["study"] for one in made} == set(REPORTS)
    items = {
        (one["study_id"], item["id"]): item["subtask"]
        for one in lines(tmp_path / "out" / "2-findings.mask.jsonl")
        for item in one["items"]
    }
    for one in made:
        assert one["origin"] == "mask"
        assert one["verification"] == {"status": "draft", "stage": 6, "drafted_by": "mask", "queue": "full"}
        assert {items[one["study"], name] for name in one["evidence"]} == {one["subtask"]}
    rejects = lines(tmp_path / "out" / "rejects.jsonl")
    assert {one["reason"] for one in rejects} >= {"not_labelled", "no_body_size"}
    told = {(one["study"], one["subtask"]) for one in made}
    assert not {(one["study_id"], one.get("subtask")) for one in rejects} & told
    with pytest.raises(InputError, match="not verified"):
        read_questions(tmp_path / "out" / "questions.jsonl", catalogue())
    capsys.readouterr()
    questions(read_words(QuestionsSpec, words))
    assert capsys.readouterr().out.count("3 studies, 0 made now") == 6
    questions(read_words(QuestionsSpec, [words[0], "labels=mnms", words[2]]))
    assert "cannot be used, e.g. " in capsys.readouterr().out
    assert {one["reason"] for one in lines(tmp_path / "out" / "rejects.jsonl")} == {"mask_unfit"}


def test_a_report_that_a_mask_contradicts_goes_to_full_review(both: Path) -> None:
    ejection = {one["study"]: one for one in lines(both / "questions.jsonl") if one["subtask"] == "C10"}
    said = ejection["agrees"]
    assert (said["answer"], said["origin"], said["verification"]["mask"]) == (["A"], "report", "agrees")
    said = ejection["contradicts"]
    assert (said["answer"], said["origin"]) == (["D"], "report")
    assert (
        said["verification"] | {"mask": "contradicts", "mask_answer": ["A"], "queue": "full"}
        == (said["verification"])
    )
    assert len(said["evidence"]) > 1
    assert (ejection["silent"]["answer"], ejection["silent"]["origin"]) == (["A"], "mask")


def line(subtask: str, *answer: str) -> dict[str, Any]:
    told = {"study": "S1", "subtask": subtask, "answer": list(answer), "evidence": [], "origin": "report"}
    return told | {"verification": {"status": "draft", "queue": "sampling"}}


def test_what_only_a_mask_tells_does_not_stand_against_a_report() -> None:
    """Normal function beside akinesia of a report, and places of a scar that the report denies."""
    ours = [line("C06", "C"), line("C09", "A"), line("C12", "A"), line("C19", "A"), line("L01", "A")]
    told = {"C02": "A", "C10": "A", "C12": "C", "L01": "B", "L03": "A", "L05": "A"}
    masks = [line(name, answer) | {"origin": "mask"} for name, answer in told.items()]
    lines, rejects = joined(ours, masks, catalogue())
    assert [one["subtask"] for one in lines] == ["C02", "C06", "C09", "C12", "C19", "L01"]
    queues = {one["subtask"]: one["verification"]["queue"] for one in lines if one["origin"] == "report"}
    assert queues == {"C06": "full", "C09": "full", "C12": "full", "C19": "sampling", "L01": "full"}
    assert {(one["subtask"], one["reason"]) for one in rejects} == {
        (name, "against_truth") for name in ("C10", "L03", "L05")
    }


def test_masks_and_labels_go_together(tmp_path: Path) -> None:
    for words, message in (
        ([], "neither reports nor masks has a value"),
        ([f"masks={tmp_path}/studies"], "masks and labels go together"),
        ([f"reports={tmp_path}/reports"], "reports and studies go together"),
    ):
        with pytest.raises(InputError, match=message):
            read_words(QuestionsSpec, [*words, f"out={tmp_path}/out"])
    of_masks = read_words(QuestionsSpec, [f"masks={tmp_path}/studies", "labels=acdc", f"out={tmp_path}/out"])
    with pytest.raises(InputError, match="model: reads reports, and none are named"):
        second_of(of_masks, ["model=oracle"])
    (tmp_path / "studies").mkdir()
    words = [f"masks={tmp_path}/studies", f"out={tmp_path}/out"]
    with pytest.raises(InputError, match="label map 'acd' is not known; choose one of acdc"):
        questions(read_words(QuestionsSpec, [*words, "labels=acd"]))
    with pytest.raises(InputError, match="holds no study"):
        questions(read_words(QuestionsSpec, [*words, "labels=acdc"]))


def test_masks_give_volumes_and_phases_as_numbers(both: Path, tmp_path: Path) -> None:
    words = [f"masks={both.parent}/studies", "labels=acdc", f"out={tmp_path}/out", "protocol=numbers-1"]
    assert questions(read_words(QuestionsSpec, words)) == 0
    told = {one["subtask"]: one["answer"] for one in lines(tmp_path / "out" / "questions.jsonl")}
    assert sorted(told) == ["N01", "N02", "N03", "N04", "N05"]
    numbers = {name: float(answer[0].split()[0]) for name, answer in told.items()}
    share = 100 * (1 - numbers["N03"] / numbers["N02"])
    assert numbers["N01"] == pytest.approx(share, abs=0.2)
    assert told["N04"] == ["1 phase"]
