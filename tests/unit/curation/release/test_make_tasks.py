"""Task folders of a release: what they hold, and what they refuse."""

import ast
import json
import shutil
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from cardiolens.base.errors import InputError
from cardiolens.curation.release.harness.make_tasks import make_tasks
from tests.unit.curation.release.released_phantoms import release_phantoms


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tasks")
    release_phantoms(folder, "references=true")
    assert make_tasks([f"harness={folder}/ours", f"out={folder}/tasks"]) == 0
    return folder


def test_what_is_handed_out_imports_nothing_of_ours(root: Path) -> None:
    for path in (root / "tasks").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
            assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names, path


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


def mark_of_a_frame(root: Path) -> None:
    question_of(root, question="How large is <image> it?")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (changed, r"harness=.*questions.jsonl: is not what was released"),
        (cohort_elsewhere, "cohort '../../../t' is no name"),
        (canary_of_yaml, "the canary in its release.json is none"),
        (mark_of_a_frame, "holds <image>, which marks the place"),
    ],
)
def test_what_cannot_be_made_is_refused(damage: Callable[[Path], None], said: str, copied: Path) -> None:
    damage(copied)
    with pytest.raises(InputError, match=said):
        make_tasks([f"harness={copied}/ours", f"out={copied}/t"])
    assert not (copied / "t").exists()


@pytest.fixture
def copied(root: Path, tmp_path: Path) -> Path:
    shutil.copytree(root / "ours", tmp_path / "ours")
    return tmp_path
