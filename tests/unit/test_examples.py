"""The examples run: each file of `examples/`, on a small run or with the words that its page gives."""

import json
import re
import runpy
from pathlib import Path
from typing import Any

import altair
import pytest
from page_run import finished, small_spec
from small_cohort import make_cohort

from cardiolens.commands.export import main as export
from cardiolens.config.compose import read_spec
from cardiolens.storage.places import Run

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return finished(
        small_spec(make_cohort(tmp_path_factory.mktemp("examples"), 2), "examples", control=["none"])
    )


def test_every_example_is_told_and_every_told_one_is_there() -> None:
    told = set(re.findall(r"^\| `([^`]+)`", (EXAMPLES / "README.md").read_text(), re.MULTILINE))
    there = {path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*") if path.is_file()}
    assert told == {path for path in there if "__pycache__" not in path} - {"README.md"}


def test_entries_are_read_where_a_command_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES)
    spec = read_spec(["model=[my_server,my_reader]", "selector=[random_3]"])
    assert [model.engine for model in spec.model] == ["http", "person"]
    assert spec.selector[0].seeds == (1, 2, 3)


def test_a_protocol_of_ones_own_is_checked_and_named(tmp_path: Path) -> None:
    made = runpy.run_path(str(EXAMPLES / "own_protocol.py"))["make"](tmp_path / "mine")
    assert made.protocol == "ours-1"
    assert [option.text for option in made["T05"].options] == ["No", "Yes"]
    assert read_spec([f"dataset.protocol={tmp_path}/mine"]).dataset.protocol.endswith("mine")


def test_tables_are_read_from_the_export(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["export", f"run={run.root}", "format=arrow"])
    assert export() == 0
    rows = runpy.run_path(str(EXAMPLES / "read_tables.py"))["right_answers"](run.root)
    assert {row["model"] for row in rows} == {"noisy", "collapse"}
    assert all(0 <= row["right_mean"] <= 1 and row["right_count"] > 0 for row in rows)


def test_the_notebook_runs_from_its_first_cell_to_its_last(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUN", str(run.root))
    notebook = json.loads((EXAMPLES / "read_run.ipynb").read_text())
    assert notebook["nbformat"] == 4
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(not cell["outputs"] for cell in cells), "a notebook with output may show what a report says"
    names: dict[str, Any] = {}
    shown = []
    for cell in cells:
        *lines, last = "".join(cell["source"]).splitlines()
        exec("\n".join(lines), names)
        shown.append(eval(last, names))
    models, table, figure, case = shown
    assert models == ("noisy", "collapse")
    assert len(table) == 2
    assert isinstance(figure, altair.TopLevelMixin)
    assert "<table" in case._repr_html_()
