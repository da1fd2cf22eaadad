"""A training run as a person starts it: killed, it ends with the weights of one that was not."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from cardiolens.inference.models.chat import Chat

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "train_reader"
pytestmark = [pytest.mark.ray, pytest.mark.long]

SHORT = [
    "cohorts=[{name: few, seed: 71, studies: 2}]",
    *(
        "see.steps=2",
        "see.size=4",
        "read.steps=5",
        "read.size=2",
        "checkpoint=1",
        "device=cpu",
    ),
]


def start(out: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "train_reader", f"out={out}", *SHORT, *words],
        cwd=EXAMPLE,
        env=os.environ | {"PYTHONPATH": f"{EXAMPLE}{os.pathsep}{EXAMPLE.parents[1]}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def ended(running: subprocess.Popen[str], expect: int = 0) -> str:
    printed, _ = running.communicate(timeout=1500)
    assert running.returncode == expect, printed
    return printed


def curve(out: Path) -> list[int]:
    path = out / "curve.jsonl"
    return [json.loads(line)["step"] for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training that nothing happened to."""
    folder = tmp_path_factory.mktemp("trained") / "whole"
    printed = ended(start(folder))
    assert f"model: {folder / 'model'}; as model=[reader_small]" in printed
    return folder


@pytest.fixture(autouse=True)
def on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLE)


def test_questions_share_the_frames_of_a_pack(whole: Path) -> None:
    from train_reader.examples import Cohort
    from train_reader.recipe import read_recipe

    recipe = read_recipe([f"out={whole}", *SHORT])
    cohort, chat, draw = Cohort(recipe, recipe.cohorts[0]), Chat(whole / "processor"), Random(5)
    packs = [cohort.pack(cohort.study_ids[0], chat, draw) for _ in range(40)]
    asked = [{one.subtask for one in pack.asked} for pack in packs if pack is not None]
    assert any({"C01", "C02", "C05"} <= subtasks for subtasks in asked), asked
    assert all(pack.shown.count("<image>") == len(pack.pictures) for pack in packs if pack is not None)


def test_a_killed_training_ends_with_the_same_weights_and_refuses_another_recipe(
    whole: Path, tmp_path: Path
) -> None:
    killed = tmp_path / "killed"
    killed.mkdir()
    for name in ("data", "stores"):
        (killed / name).symlink_to(whole / name)
    running = start(killed)
    while len(curve(killed)) < 2:
        assert running.poll() is None, running.communicate()[0]
        time.sleep(0.05)
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate()
    assert len(curve(killed)) < 7, "it was to be killed before its end"
    (killed / "curve.jsonl").unlink()  # as by a kill between a state and its curve
    ended(start(killed))
    one, other = ((folder / "model" / "model.safetensors").read_bytes() for folder in (whole, killed))
    assert one == other
    record = json.loads((killed / "model" / "training.json").read_text())
    assert [line["stage"] for line in record["curve"]] == ["see"] * 2 + ["read"] * 5
    assert record["recipe"]["seed"] == 2606
    refused = ended(start(killed, "seed=5"), expect=2)
    assert "another recipe; give the words with which it was begun, or another out" in refused
