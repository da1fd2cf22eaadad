"""Task folders of a release: what they hold, what they refuse, and the class for VLMEvalKit."""

import ast
import importlib
import json
import shutil
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest

from cardiolens.base.errors import InputError
from cardiolens.curation.release.harness import handing_out
from cardiolens.curation.release.harness.make_tasks import make_tasks
from cardiolens.curation.release.make import release
from tests.unit.curation.release.released_phantoms import release_phantoms

HANDED_OUT = Path(handing_out.__file__).parent / "handed_out"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tasks")
    release_phantoms(folder, "references=true")
    assert make_tasks([f"harness={folder}/ours", f"out={folder}/tasks"]) == 0
    return folder


def test_a_release_holds_no_code_and_its_tasks_hold_ours_alone(root: Path) -> None:
    assert list((root / "ours").rglob("*.py")) == []
    for path in (root / "tasks").rglob("*.py"):
        assert path.read_bytes() == (HANDED_OUT / path.name).read_bytes()


def test_what_is_handed_out_imports_nothing_of_ours() -> None:
    for path in HANDED_OUT.glob("cardiolens_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
            assert [name for name in names if name.partition(".")[0] == "cardiolens"] == [], path


def test_the_canary_is_in_every_readable_file_of_a_task(root: Path) -> None:
    canary = json.loads((root / "ours" / "release.json").read_text())["canary"]
    files = [path for path in (root / "tasks").rglob("*") if path.suffix in {".md", ".yaml", ".tsv"}]
    assert len(files) == 7
    assert all(canary in path.read_text() for path in files)


def changed(root: Path) -> None:
    path = root / "ours" / "questions.jsonl"
    path.write_text(path.read_text().replace('"answer": ["A"]', '"answer": ["B"]', 1))


def indexed(release: Path, name: str, text: str) -> None:
    """Change a file and the index with it, as who makes a release can."""
    (release / name).write_text(text)
    index = json.loads((release / "release.json").read_text())
    index["files"][name] = {"bytes": len(text.encode()), "sha256": sha256(text.encode()).hexdigest()}
    (release / "release.json").write_text(json.dumps(index))


def cohort_elsewhere(root: Path) -> None:
    path = next((root / "ours" / "studies").glob("*/study.json"))
    told = json.loads(path.read_text()) | {"cohort": ["../../../t"]}
    indexed(root / "ours", path.relative_to(root / "ours").as_posix(), json.dumps(told))


def canary_of_yaml(root: Path) -> None:
    index = root / "ours" / "release.json"
    told = json.loads(index.read_text())
    told["canary"] += "\ndoc_to_text: !function os.system"
    index.write_text(json.dumps(told))


def question_of(root: Path, **more: str) -> None:
    lines = [json.loads(line) for line in (root / "ours" / "questions.jsonl").read_text().splitlines()]
    lines[0] |= more
    indexed(root / "ours", "questions.jsonl", "".join(json.dumps(line) + "\n" for line in lines))


def no_study(root: Path) -> None:
    question_of(root, study_id="elsewhere")


def mark_of_a_frame(root: Path) -> None:
    question_of(root, question="How large is <image> it?")


def reports_alone(root: Path) -> None:
    """A release of reports: what remains of one whose index says so."""
    lines = (root / "phantoms" / "questions.jsonl").read_text().splitlines(keepends=True)
    kept = [line for line in lines if json.loads(line)["answer_type"] == "report"]
    (root / "phantoms" / "questions.jsonl").write_text("".join(kept))


def nothing(_: Path) -> None:
    pass


@pytest.mark.parametrize(
    ("damage", "words", "said"),
    [
        (changed, ["harness={}/ours", "out={}/t"], r"harness=.*questions.jsonl: is not what was released"),
        (cohort_elsewhere, ["harness={}/ours", "out={}/t"], "cohort '../../../t' is no name"),
        (canary_of_yaml, ["harness={}/ours", "out={}/t"], "the canary in its release.json is none"),
        (no_study, ["harness={}/ours", "out={}/t"], "line 1: its study elsewhere is not there"),
        (mark_of_a_frame, ["harness={}/ours", "out={}/t"], "holds <image>, which marks the place"),
        (nothing, ["harness={}/ours", "out={}/ours/t"], "lies in the release"),
        (nothing, ["harness={}/ours", "out={}/ours"], "is not an empty folder"),
        (nothing, ["harness={}/phantoms", "out={}/t"], "holds no release"),
        (nothing, ["harness={}/ours"], "out= is not given"),
        (nothing, ["harness={}/ours", "out={}/t", "name=x"], "name=: no word of this command"),
    ],
)
def test_what_cannot_be_made_is_refused(
    damage: Callable[[Path], None], words: list[str], said: str, root: Path, copied: Path
) -> None:
    damage(copied)
    with pytest.raises(InputError, match=said):
        make_tasks([word.format(copied) for word in words])
    assert not (copied / "t").exists()


@pytest.fixture
def copied(root: Path, tmp_path: Path) -> Path:
    for name in ("ours", "phantoms"):
        shutil.copytree(root / name, tmp_path / name)
    return tmp_path


def test_a_release_without_choice_questions_has_no_task(copied: Path, tmp_path: Path) -> None:
    reports_alone(copied)
    given = [f"questions={copied}/phantoms/questions.jsonl", f"studies={copied}/phantoms/studies"]
    assert release([*given, f"out={tmp_path}/r", "name=r", "licence=internal", "references=true"]) == 0
    with pytest.raises(InputError, match="has no choice question with a told answer and frames"):
        make_tasks([f"harness={tmp_path}/r", f"out={tmp_path}/t"])


@pytest.fixture
def kit(root: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The class for VLMEvalKit beside stand-ins of what it imports of the toolkit."""

    class Base:
        def __init__(self, dataset: str) -> None:
            self.data = self.load_data(dataset)

    smp, base = ModuleType("vlmeval.smp"), ModuleType("vlmeval.dataset.image_base")
    data = root / "tasks" / "vlmevalkit" / "LMUData"
    smp.LMUDataRoot = lambda: str(data)
    smp.load = pd.read_csv
    smp.dump = lambda table, path: table.to_csv(path)
    smp.get_intermediate_file_path = lambda path, suffix, kind: f"{path}{suffix}.{kind}"
    base.ImageBaseDataset = Base
    answers = importlib.import_module("cardiolens.curation.release.harness.handed_out.cardiolens_answers")
    for name, module in {
        "vlmeval": ModuleType("vlmeval"),
        "vlmeval.smp": smp,
        "vlmeval.dataset": ModuleType("vlmeval.dataset"),
        "vlmeval.dataset.image_base": base,
        "vlmeval.dataset.cardiolens_answers": answers,
    }.items():
        monkeypatch.setitem(sys.modules, name, module)
    name = "cardiolens.curation.release.harness.handed_out.cardiolens_questions"
    monkeypatch.delitem(sys.modules, name, raising=False)
    yield importlib.import_module(name).CardioLensQuestions
    sys.modules.pop(name, None)


def test_the_class_for_vlmevalkit_asks_and_scores(kit: Any, tmp_path: Path) -> None:
    """The toolkit itself is not installed: its base class is a stand-in here."""
    assert kit.supported_datasets() == ["cardiolens_ours_dev", "cardiolens_ours_test_b"]
    asked = kit("cardiolens_ours_test_b")
    assert len(asked.data) > 20  # which two of three patients these are is drawn
    parts = asked.build_prompt(0)
    pictures = [part["value"] for part in parts if part["type"] == "image"]
    assert [part["type"] for part in parts[:3]] == ["text", "image", "text"]
    assert 0 < len(pictures) <= 16
    assert all(Path(path).read_bytes().startswith(b"\x89PNG") for path in pictures)
    assert "ANSWER: <letter>" in parts[-1]["value"]
    told = [json.loads(cell)["answer"] for cell in asked.data["scored_by"]]
    replies = ["I do not know", *(f"ANSWER: {', '.join(keys)}" for keys in told[1:])]
    file = tmp_path / "replies.csv"
    pd.DataFrame({"index": asked.data["index"], "prediction": replies}).to_csv(file)
    (scores,) = asked.evaluate(str(file)).to_dict("records")
    assert scores["Overall"] == (len(told) - 1) / len(told)
    assert scores[asked.data["category"][0]] == 0.5
