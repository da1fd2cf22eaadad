"""The examples run: each file of `examples/`, on a small run or with the words that its page gives."""

import asyncio
import json
import re
import runpy
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import altair
import numpy as np
import pytest
from page_run import finished, small_spec
from running_server import running
from small_cohort import make_cohort

from cardiolens.commands.export import main as export
from cardiolens.config.compose import read_spec
from cardiolens.config.model import ModelSpec
from cardiolens.inference.engine.ask import Ask
from cardiolens.inference.engine.http.engine import HttpEngine
from cardiolens.storage.places import Run
from cardiolens.storage.schemas import FRAME

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    root = make_cohort(tmp_path_factory.mktemp("examples"), 4)
    return finished(small_spec(root, "examples", control=["none"]))


def test_every_example_is_told_and_every_told_one_is_there() -> None:
    told = set(re.findall(r"^\| `([^`]+)`", (EXAMPLES / "README.md").read_text(), re.MULTILINE))
    there = {path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*") if path.is_file()}
    folders = tuple(name for name in told if name.endswith("/"))
    alone = {path for path in there if "__pycache__" not in path and not path.startswith(folders)}
    assert told - set(folders) == alone - {"README.md"}
    assert all((EXAMPLES / name).is_dir() for name in folders)


def test_entries_are_read_where_a_command_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES)
    spec = read_spec(["model=[my_server,my_volumes,my_reader]", "selector=[random_3]"])
    assert [model.engine for model in spec.model] == ["http", "http", "person"]
    assert spec.selector[0].seeds == (1, 2, 3)


def test_a_protocol_of_ones_own_is_checked_and_named(tmp_path: Path) -> None:
    made = runpy.run_path(str(EXAMPLES / "own_protocol.py"))["make"](tmp_path / "mine")
    assert made.protocol == "ours-1"
    assert [option.text for option in made["T05"].options] == ["No", "Yes"]
    assert read_spec([f"dataset.protocol={tmp_path}/mine"]).dataset.protocol.endswith("mine")


def test_frames_reach_a_model_of_volumes_as_a_stack_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(EXAMPLES)
    (model,) = read_spec(["model=[my_volumes]"]).model
    names = runpy.run_path(str(EXAMPLES / "volume_server.py"))
    volumes: list[tuple[Any, str]] = []

    def answer(volume: Any, text: str) -> str:
        volumes.append((volume, text))
        return "ANSWER: B" if volume[-1].mean() > volume[0].mean() else "ANSWER: A"

    frames = {"dark": np.full((4, 6), 10, np.uint8), "bright": np.full((8, 8, 3), 200, np.uint8)}
    with running(names["server"](answer, 0)) as server:
        served = model.served.model_copy(update={"base_url": f"http://127.0.0.1:{server.server_port}/v1"})
        texts = asyncio.run(_replies(model.model_copy(update={"http": served}), tmp_path, frames))
        with pytest.raises(HTTPError, match="400"):
            urlopen(f"http://127.0.0.1:{server.server_port}/v1/chat/completions", b"[]")
    assert texts == ["ANSWER: B", "ANSWER: A", "ANSWER: A"]
    (volume, text), (backwards, _), (black, alone) = volumes
    assert volume.shape == backwards.shape == black.shape == (32, 256, 256)
    assert (volume[0].max(), volume[-1].min()) == (10, 200)
    assert (backwards[0].max(), black.max()) == (200, 0)
    assert "Frame 1:\n\n[slice 1]" in text
    assert "[slice" not in alone


async def _replies(model: ModelSpec, completions: Path, frames: Mapping[str, Any]) -> list[str]:
    engine = HttpEngine(model, completions)
    await engine.start()
    texts = []
    for keys in (("dark", "bright"), ("bright", "dark"), ()):
        text = "".join(f"Frame {number}:\n{FRAME}\n" for number, _ in enumerate(keys, start=1)) + "Which?"
        ask = Ask("key", "system", text, keys, "single", ("A", "B"), 8)
        texts.append((await engine.answer(ask, frames.__getitem__)).text)
    engine.close()
    await asyncio.sleep(0)
    return texts


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
