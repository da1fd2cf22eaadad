"""A change of any code that can decide what a stage writes makes it run again, and no other change does."""

import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cardiolens.base.paths import PACKAGE
from cardiolens.base.provenance import closure_of, code_of
from tests.unit.curation.questions.report_folders import write_reports

NAMED = re.compile(r'code_of\("(cardiolens[\w.]+)"\)|^_CODE = "(cardiolens[\w.]+)"', re.MULTILINE)
STAGES = {
    "cardiolens.curation.ingest.import_run": "show/page/write.py",
    "cardiolens.curation.questions.draft_questions": "inference/plan/plan.py",
    "cardiolens.inference.plan.plan": "score/verdicts/parse.py",
    "cardiolens.score.run_results.model_replies": "inference/plan/plan.py",
    "cardiolens.study.group": "protocol/tasks/truth.py",
}


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkout")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, folder / "cardiolens", ignore=ignored)
    shutil.copytree(PACKAGE.parent / "conf", folder / "conf")
    shutil.copy(PACKAGE.parent / "pyproject.toml", folder)
    return folder / "cardiolens"


def fresh(stage: str, package: Path) -> str:
    return code_of.__wrapped__(stage, package=package)


def test_these_are_all_stages():
    texts = {path: path.read_text() for path in PACKAGE.rglob("*.py")}
    named = {a or b for text in texts.values() for a, b in NAMED.findall(text)}
    assert not [path for path, text in texts.items() if "code_of(__name__)" in text]
    assert named == set(STAGES)


@pytest.mark.full
@pytest.mark.parametrize("most", [8, pytest.param(10_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("stage", STAGES)
def test_one_byte_in_any_file_of_the_closure_counts(stage, most, copied):
    before = fresh(stage, copied)
    files = closure_of(stage, package=copied)
    assert copied / f"{stage.partition('.')[2].replace('.', '/')}.py" in files
    unnoticed = []
    for path in random.sample(sorted(files), min(most, len(files))):
        content = path.read_bytes()
        path.write_bytes(content + b"\n")
        if fresh(stage, copied) == before:
            unnoticed.append(path)
        path.write_bytes(content)
    assert unnoticed == []
    assert fresh(stage, copied) == before


@pytest.mark.parametrize(("stage", "outside"), STAGES.items())
def test_a_change_outside_the_closure_does_not_count(stage, outside, copied):
    before = fresh(stage, copied)
    path = copied / outside
    content = path.read_bytes()
    path.write_bytes(content + b"\n")
    assert fresh(stage, copied) == before
    path.write_bytes(content)


@pytest.mark.full
@pytest.mark.parametrize("stage", STAGES)
def test_whatever_python_loads_for_a_stage_is_in_its_closure(stage):
    """Python is the judge: a module that it imports and that the closure lacks would go unnoticed."""
    code = (
        f"import sys, {stage}\n"
        "print(*(m.__file__ for name, m in sys.modules.items() if name.startswith('cardiolens')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {Path(file).resolve() for file in done.stdout.split()}
    assert len(loaded) > 5
    assert loaded - set(closure_of(stage)) == set()


def test_imports_inside_functions_count_and_those_for_types_do_not(tmp_path):
    package = tmp_path / "small"
    for name, text in {
        "__init__.py": "def lazy():\n    from small import unrelated\n",
        "stage.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from small import typed\n"
        "def run():\n    from . import used\n    import small.inner.deep\n",
        "used.py": "",
        "typed.py": "",
        "unrelated.py": "",
        "inner/__init__.py": "",
        "inner/deep.py": "",
        "inner/words.yaml": "a: 1",
        "inner/data/table.json": "{}",
        "inner/other/__init__.py": "",
        "inner/other/words.yaml": "",
        "inner/gone/__pycache__/gone.cpython-311.pyc": "left by an earlier version",
        "conf/sweep.yaml": "shipped in a wheel; it is part of the configuration's own digest",
    }.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    names = {path.relative_to(package).as_posix() for path in closure_of("small.stage", package=package)}
    inner = {"inner/__init__.py", "inner/deep.py", "inner/words.yaml", "inner/data/table.json"}
    assert names == {"__init__.py", "stage.py", "used.py"} | inner


def test_a_module_that_does_not_exist_is_an_error():
    with pytest.raises(ValueError, match="no module of cardiolens"):
        code_of("cardiolens.questions")


def run(package: Path, verb: str, *words: str) -> str:
    command = [sys.executable, "-m", f"cardiolens.{verb}", *words]
    done = subprocess.run(command, cwd=package.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.full
def test_an_import_is_made_anew_when_other_code_decides_it(copied, prepared_phantom, tmp_path):
    words = ("source=" + str(tmp_path / "export"), "out=" + str(tmp_path / "out"), f"key={tmp_path}/key")
    study = prepared_phantom / "data" / "studies" / "PH-NORMAL"
    shutil.copytree(study, tmp_path / "export" / "PH-NORMAL", ignore=shutil.ignore_patterns("study.json"))
    assert "(unchanged)" not in run(copied, "ingest", *words)
    assert "(unchanged)" in run(copied, "ingest", *words)
    path = copied / "study" / "times.py"
    content = path.read_text()
    path.write_text(content + "\n# another first pass\n")
    assert "(unchanged)" not in run(copied, "ingest", *words)
    path.write_text(content)


@pytest.mark.full
def test_questions_are_drafted_anew_when_other_code_decides_them(copied, tmp_path):
    words = write_reports(tmp_path, {"S1": "LV ejection fraction 35 %. Subendocardial LGE of the septum.\n"})
    stage = tmp_path / "out"
    run(copied, "questions", *words)
    first = {path.name: path.read_text() for path in stage.rglob("*.jsonl")}
    path = copied / "report_text" / "grammar.yaml"
    content = path.read_text()
    path.write_text(content + "\n")
    run(copied, "questions", *words)
    path.write_text(content)
    second = {path.name: path.read_text() for path in stage.rglob("*.jsonl")}
    assert first.keys() == second.keys()
    assert first != second
