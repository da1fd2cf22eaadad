"""Stage 6(e): drafts of studies that show the same pictures name each other, and are reviewed whole."""

import json
import shutil
from pathlib import Path

from report_folders import lines, write_study

from cardiolens.config.command_words import read_words
from cardiolens.config.curation_specs import QuestionsSpec
from cardiolens.config.dataset import PhantomSpec
from cardiolens.curation.questions.draft_questions import questions
from cardiolens.phantom.phantom_cohort import make_cohort


def test_a_study_under_two_ids_is_found(tmp_path: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    make_cohort(PhantomSpec(n_sampled=2), tmp_path / "phantoms")
    first, second, *_ = sorted((tmp_path / "phantoms" / "studies").iterdir())
    for folder, name in ((first, first.name), (second, second.name), (first, "AGAIN")):
        copy = shutil.copytree(folder, tmp_path / "studies" / name)
        manifest = json.loads((copy / "study.json").read_text())
        (copy / "study.json").write_text(json.dumps(manifest | {"study_id": name, "patient_id": name}))
    write_study(tmp_path, "UNREAD")
    names = (first.name, second.name, "AGAIN", "UNREAD")
    (tmp_path / "reports").mkdir()
    for name in names:
        (tmp_path / "reports" / f"{name}.txt").write_text(f"LVEF 60 %. Report {names.index(name)}.")
    words = [f"reports={tmp_path}/reports", f"studies={tmp_path}/studies", f"out={tmp_path}/out"]
    assert questions(read_words(QuestionsSpec, words)) == 0
    checked = {one["study_id"]: one["checked"]["C10"] for one in lines(tmp_path / "out/6-automatic.jsonl")}
    duplicates = {name: state["duplicate"] for name, state in checked.items()}
    assert duplicates == {first.name: ["AGAIN"], second.name: [], "AGAIN": [first.name], "UNREAD": None}
    output = capsys.readouterr().out
    assert "2 studies show the pictures of another one" in output
    assert "1 studies have images that cannot be read" in output
    questions(read_words(QuestionsSpec, words))
    assert "6-frames: 4 studies, 0 made now" in capsys.readouterr().out
