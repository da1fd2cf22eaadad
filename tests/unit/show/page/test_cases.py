"""What the viewer shows of a case: its grounds, the stages of a chain, words of reports only in private."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_run import finished, small_spec
from scripted_engine import CHOOSES, illegally
from small_cohort import make_cohort, reader, sweep_spec
from study_folders import study, volume, voxels, write_nifti

from cardiolens.curation.review.review_commands import keep_quotes
from cardiolens.show.page.case_viewer.cases import question_cases
from cardiolens.show.page.case_viewer.item_sources import Sources, open_sources
from cardiolens.show.page.case_viewer.pictures import StudyPictures
from cardiolens.show.page.case_viewer.withheld import WITHHELD, public_reply
from cardiolens.show.page.embed import to_json
from cardiolens.storage import documents, schemas, tables
from cardiolens.storage.places import Run, Store
from cardiolens.study.manifest import read_study

QUOTE = "Severely reduced <b>systolic</b> function"
VERIFICATION = {
    "status": "verified",
    "verdict": "accept",
    "by": ["anna", "berta"],
    "at": "2026-01-02T03:04:05",
}


def run_of(root: Path) -> Run:
    return finished(sweep_spec(root, reader("uniform"), subtask=["C01", "R-CINE"]))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_of(make_cohort(tmp_path_factory.mktemp("plain"), 2))


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The same questions with an id of a quote, words of their own, and who verified them."""
    root = make_cohort(tmp_path_factory.mktemp("told"), 2)
    path = root / "questions.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if line["subtask"] == "C01":
            line |= {"evidence": ["R7", "as measured"], "verification": VERIFICATION}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    drafts = root / "drafts"
    drafts.mkdir()
    finding = {"id": "R7", "quote": QUOTE, "section": "cine", "start": 0, "end": 9}
    rows = [{"study_id": study, "items": [finding]} for study in ("PH-0001", "PH-0002")]
    (drafts / "2-findings.rules.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (drafts / "2-findings.model.jsonl").write_text("[]\n{not json\n")
    keep_quotes(drafts, root)
    return run_of(root)


def shown(sources: Sources, *, private: bool) -> list[dict[str, Any]]:
    """Every question with its cases under every arm."""
    keys = [(at, arm) for at in range(sources.questions.num_rows) for arm in range(len(sources.arms))]
    return [case for _, case in question_cases(sources, keys, private=private)]


def questions(sources: Sources, *, private: bool) -> dict[str, Any]:
    cases = shown(sources, private=private)
    return {qa_id: question for case in cases for qa_id, question in case["questions"].items()}


def test_quotes_and_pseudonyms_are_shown_where_the_viewer_is_private(told: Run) -> None:
    sources = open_sources(told, [told])
    grounds = {qa_id: one["grounds"] for qa_id, one in questions(sources, private=True).items()}
    quotes = [{"text": QUOTE, "section": "cine"}, {"text": "as measured", "section": ""}]
    wanted = {"origin": "phantom", "quotes": quotes, "verification": VERIFICATION, "slices": []}
    assert {qa_id for qa_id, one in grounds.items() if one == wanted} == {"PH-0001:C01", "PH-0002:C01"}
    assert [one["quotes"] for one in grounds.values() if one != wanted] == [[], []]  # of reports
    public = json.dumps(questions(sources, private=False))
    assert not any(word in public for word in (QUOTE[:8], "as measured", "anna", "2026-01"))
    assert '"verified"' in public


def test_evidence_changes_no_digest_and_no_verdict(plain: Run, told: Run) -> None:
    assert plain.root.name.rpartition("-")[0] == told.root.name.rpartition("-")[0]
    digests = [documents.read_manifest(run)["questions_digest"] for run in (plain, told)]
    assert digests[0] == digests[1]
    kept = [Store(documents.read_configuration(run).store) for run in (plain, told)]
    quotes = [tables.read(store.evidence, schemas.EVIDENCE)["quotes"].combine_chunks() for store in kept]
    assert [len(one.flatten()) for one in quotes] == [0, 4]
    without = ("arm_id", "qa_id", "correct", "parsed")
    first, second = (tables.read(run.verdicts, schemas.VERDICTS, without) for run in (plain, told))
    assert first.equals(second)


def test_the_mask_of_a_study_is_drawn_over_its_frames_and_nothing_else_is(tmp_path: Path) -> None:
    folder = tmp_path / "a folder of any name"
    mask = np.zeros((6, 5, 12), np.uint8)
    mask[1, 2, 5] = 7
    entry = {"mask": {"path": "mask.nii.gz", "sha256": write_nifti(folder / "mask.nii.gz", mask)}}
    found = read_study(study(folder, volume(folder, voxels(), **entry)))
    overlay = StudyPictures(tmp_path / "store", tmp_path, ()).overlay(found.study_id, "cine_sax")
    linked = tmp_path / "links" / "S"
    linked.mkdir(parents=True)
    for file in folder.iterdir():
        (linked / file.name).symlink_to(file)
    for roots, is_read in (((), False), ((folder,), True)):
        pictures = StudyPictures(tmp_path / "store", tmp_path / "links", (), roots)
        assert (pictures.overlay(found.study_id, "cine_sax") is not None) == is_read
    assert overlay is not None
    height, width = overlay.mask.displayed(overlay.mask.grid).shape[2:]
    drawn = [overlay.on(np.full((height, width), 100, np.uint8), idx) for idx in range(12)]
    assert [idx for idx, frame in enumerate(drawn) if (frame != 100).any()] == [5]
    own = found.study_id
    nowhere = (("elsewhere", own, "cine_sax"), ("", "S9", "cine_sax"), ("", own, "x"))
    for name, other, volume_id in nowhere:
        assert StudyPictures(tmp_path / "store", tmp_path / name, ()).overlay(other, volume_id) is None


def read(root: Path, model: str) -> Sources:
    run = finished(sweep_spec(root, reader(model), name=model, subtask=["R-CINE", "C01"]))
    return open_sources(run, [run])


def words(root: Path) -> list[str]:
    """Findings and impressions of the cohort, as a script writes them."""
    rows = tables.read(root / "store" / "questions", schemas.QUESTIONS).to_pylist()
    reports = [json.loads(row["reference"]) for row in rows if row["subtask"] == "R-CINE"]
    return [to_json(report[name])[1:-1] for report in reports for name in ("findings", "impression")]


@pytest.mark.parametrize("said", ["Normal.", 'No "scar".\nNone.', json.dumps('No "scar".\nNone.')])
def test_a_report_is_withheld_as_it_is_and_as_json_writes_it(said: str) -> None:
    reference = json.dumps({"findings": 'No "scar".\nNone.', "impression": "Normal."})
    assert public_reply(f"Report: {said}", reference) == WITHHELD
    assert public_reply("Report: scar.", reference) == "Report: scar."


def test_words_of_reports_stand_only_where_they_were_asked_for(tmp_path: Path) -> None:
    sources = read(make_cohort(tmp_path, 2), "oracle")
    private, public = (to_json(shown(sources, private=private)) for private in (True, False))
    said = words(tmp_path)
    assert len(said) == 4
    assert all(text in private for text in said)
    assert not any(text in public for text in said)
    assert public.count(WITHHELD) == 2  # once a study: the oracle repeats its report
    assert "lv_size" in public
    other = read(tmp_path, "uniform")  # whose replies repeat no report
    assert WITHHELD not in to_json(shown(other, private=False))


@pytest.fixture(scope="module")
def chains(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    root = make_cohort(tmp_path_factory.mktemp("stages"), 1)
    selectors = [{"name": "self", "kind": "self"}, {"name": "clinical", "kind": "clinical"}]
    chosen: dict[str, Any] = {"selector": selectors, "budget": [3], "subtask": ["C10", "R-CINE"]}
    spec = small_spec(root, "stages", model=[reader("oracle")], control=["none"], **chosen)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(CHOOSES, illegally)
        run = finished(spec)
    return open_sources(run, [run])


@pytest.mark.parametrize("private", [True, False])
def test_frames_prompts_and_replies_stand_in_order(chains: Sources, private: bool) -> None:
    for one in shown(chains, private=private):
        (arms,) = one["cases"].values()
        for at, case in arms.items():
            prompt, frames = one["texts"][case["prompt"]], one["frames"][case["frames"]]
            assert prompt.count(schemas.FRAME) == len(frames)
            if chains.header.arms[at].selector != "self":
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
