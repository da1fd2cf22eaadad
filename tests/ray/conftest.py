"""A small phantom cohort, prepared once, and sweeps run on copies of its store as a person would run them."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cardiolens.storage import schemas, tables

COHORT = ["dataset.phantom.canonical=[PH-NORMAL,PH-ICM-LAD]", "dataset.phantom.n_sampled=2"]
# Unconstrained replies of 48 tokens: long enough to be killed in the middle.
ASKED = [
    "name=faults",
    "model=[tiny]",
    "model.tiny.max_tokens.standard=48",
    "+prompt.standard.asks_back=false",  # else almost every reply of this model is asked for twice
    "selector=[clinical,random]",
    "budget=[8]",
    "tracker=none",
    "stream.flush_rows=16",
]


@dataclass(frozen=True)
class Place:
    """A working directory with its own store and outputs on the shared cohort."""

    root: Path
    data: Path

    def command(self, *words: str) -> list[str]:
        where = [
            f"dataset.studies={self.data}/studies",
            f"dataset.questions={self.data}/questions.jsonl",
            f"store={self.root}/store",
            f"outputs={self.root}/outputs",
        ]
        return [sys.executable, "-m", "cardiolens.sweep", *COHORT, *where, *words]

    def start(self, *words: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*words),
            cwd=self.root,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def sweep(self, *words: str, expect: int = 0, **environment: str) -> str:
        """Run to the end; what it printed."""
        running = self.start(*words, **environment)
        printed, _ = running.communicate(timeout=1500)
        assert running.returncode == expect, printed
        return printed

    @property
    def run(self) -> Path:
        (found,) = (self.root / "outputs").iterdir()
        return found

    def manifest(self) -> dict[str, Any]:
        return json.loads((self.run / "manifest.json").read_text())

    def completions(self, model: str = "tiny") -> pa.Table:
        folders = sorted((self.root / "store" / "completions").glob(f"{model}-*"))
        return tables.concat(
            [tables.read(folder, schemas.COMPLETIONS) for folder in folders], schemas.COMPLETIONS
        )

    def keys(self, model: str = "tiny") -> list[str]:
        """Keys of what is in the store, as often as they are there."""
        return self.completions(model)["request_key"].to_pylist()

    def write_model(self, name: str, entry: str) -> Path:
        """A model's file in the working directory."""
        file = self.root / "conf" / "model" / f"{name}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(entry)
        return file

    def wait_for_parts(self, running: "subprocess.Popen[str]", model: str = "tiny", parts: int = 2) -> None:
        """Until so many parts of completions are on disk."""
        deadline = time.monotonic() + 1500
        while len(list((self.root / "store" / "completions").glob(f"{model}-*/part-*"))) < parts:
            assert running.poll() is None, running.communicate()[0]
            assert time.monotonic() < deadline, "no completions"
            time.sleep(0.05)

    def scores(self) -> pa.Table:
        return tables.read(self.run / "scores", schemas.SCORES).sort_by(
            [(name, "ascending") for name in ("arm_id", "scope", "metric")]
        )


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """The cohort and its shards, made once."""
    root = tmp_path_factory.mktemp("prepared")
    place = Place(root, root / "data")
    place.sweep(*ASKED, "mode=plan")
    shutil.rmtree(root / "outputs")
    return place


@pytest.fixture
def place(prepared: Place, tmp_path: Path) -> Iterator[Place]:
    """A copy of the prepared store, to run sweeps in."""
    shutil.copytree(prepared.root / "store", tmp_path / "store")
    yield Place(tmp_path, prepared.data)
    shutil.rmtree(tmp_path, ignore_errors=True)


@pytest.fixture(scope="session")
def undisturbed(prepared: Place, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A sweep that nothing happened to."""
    root = tmp_path_factory.mktemp("undisturbed")
    shutil.copytree(prepared.root / "store", root / "store")
    place = Place(root, prepared.data)
    place.sweep(*ASKED)
    return place
