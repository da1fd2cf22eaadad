"""One small phantom study with its store, prepared once for tests that plan."""

import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import small_cohort
from study_folders import WINDOWS, published

from cardiolens.config.compose import read_spec
from cardiolens.config.dataset import PhantomSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.phantom.phantom_cohort import make_cohort
from cardiolens.study.cohort import current_cohort, write_cohort


@pytest.fixture(autouse=True)
def _log_handlers() -> Iterator[None]:
    """A run's log stays open for the process of a command; here it would hear of the next test's warnings."""
    package = logging.getLogger("cardiolens")
    handlers, level = package.handlers[:], package.level
    yield
    for handler in set(package.handlers) - set(handlers):
        handler.close()
    package.handlers[:] = handlers
    package.setLevel(level)


@pytest.fixture
def nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts a shell script in the place of nvidia-smi."""
    program = tmp_path / "bin" / "nvidia-smi"
    program.parent.mkdir()
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")

    def says(script: str) -> None:
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    return says


@pytest.fixture(scope="session")
def prepared_phantom(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """PH-NORMAL at CI size in `data/`, its shards in `store/`."""
    root = tmp_path_factory.mktemp("phantom")
    make_cohort(PhantomSpec(canonical=("PH-NORMAL",), size="ci"), root / "data")
    folder = root / "data" / "studies" / "PH-NORMAL"
    published(root / "store", [folder])
    cohort = current_cohort(root / "store", WINDOWS)
    write_cohort(root / "store", cohort.model_copy(update={"same_pixels": ()}))
    return root


@pytest.fixture
def sweep_of(prepared_phantom: Path, tmp_path: Path) -> Callable[..., SweepSpec]:
    """A sweep over that study with a copy of its store and questions; words are the command line's."""
    shutil.copytree(prepared_phantom / "store", tmp_path / "store")
    shutil.copy(prepared_phantom / "data" / "questions.jsonl", tmp_path)

    def sweep(*words: str) -> SweepSpec:
        data = [
            "dataset.phantom.canonical=[PH-NORMAL]",
            "dataset.phantom.n_sampled=0",
            f"dataset.studies={prepared_phantom}/data/studies",
            f"dataset.questions={tmp_path}/questions.jsonl",
        ]
        return read_spec([*data, f"store={tmp_path}/store", f"outputs={tmp_path}/outputs", *words])

    return sweep


@pytest.fixture
def small_sweep(sweep_of: Callable[..., SweepSpec]) -> SweepSpec:
    """Two requests to a simulated reader."""
    return sweep_of("model=[uniform]", "subtask=[C01,L01]", "budget=[4]")


@pytest.fixture(scope="module")
def root(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small cohort for the tests of a file: of as many patients as its PATIENTS says, else of four."""
    patients = getattr(request.module, "PATIENTS", 4)
    return small_cohort.make_cohort(tmp_path_factory.mktemp("cohort"), patients)


@pytest.fixture
def fresh(root: Path) -> Path:
    """The cohort of the file without completions of other tests."""
    shutil.rmtree(root / "store" / "completions", ignore_errors=True)
    return root
