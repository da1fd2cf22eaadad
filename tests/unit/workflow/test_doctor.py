"""The doctor: a line for each check, its remedy where a sweep would fail, and a truthful exit code."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cardiolens.base.errors import InputError
from cardiolens.config.compose import read_spec
from cardiolens.runtime.stopping import StoppedError
from cardiolens.workflow import examination as doctor
from cardiolens.workflow.examination import examine
from cardiolens.workflow.sweep_checks import CHECKS, check_sweep
from tests.support.tiny_model import FOLDER


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model's files, to be damaged."""
    return Path(shutil.copytree(FOLDER, tmp_path / "model"))


@pytest.fixture
def printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """What the doctor prints of a sweep, and its exit code on the last line."""
    monkeypatch.setattr(doctor, "_ray", lambda spec: "on this machine")

    def examined(*words: str) -> str:
        places = [f"store={tmp_path}/store", f"outputs={tmp_path}/outputs", "tracker=none"]
        code = examine(read_spec(["dataset=phantom_ci", *places, *words]))
        return f"{capsys.readouterr().out}{code}"

    return examined


def test_every_check_of_a_sweep_is_a_line(printed: Callable[..., str]) -> None:
    said = printed("model=[oracle]")
    assert all(f"ok   {subject}: " in said for subject in CHECKS)
    assert "ok   data set phantom_ci: not prepared yet" in said
    assert said.endswith("nothing to fix\n0")


def test_what_a_check_refuses_stops_a_sweep_and_is_a_line_of_the_doctor(
    printed: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(spec: object) -> None:
        raise InputError("wrong; correct it")

    monkeypatch.setitem(CHECKS, "servers", refused)
    with pytest.raises(InputError, match="wrong"):
        check_sweep(read_spec(["model=[oracle]", "tracker=none"]))
    said = printed("model=[oracle]")
    assert "FIX  servers: wrong; correct it" in said
    assert said.endswith("1 to fix before a sweep\n1")


@pytest.mark.parametrize(
    ("line", "words", "told"),
    [
        ("A100, 80000, 81559", (), "ok   engine: vLLM 0.32.0 for CUDA, 1 GPU"),
        ("A100, 20000, 81559", (), "FIX  engine: A100 has 19.5 of 79.6 GiB free, and an engine wants 90%"),
        ("A100, 20000, 81559", ("+model.tiny.engine_options.gpu_memory_utilization=0.2",), "ok   engine"),
        ("No devices were found", (), "FIX  engine: nvidia-smi lists no GPU"),
    ],
)
def test_what_gpus_lack_is_told_with_its_remedy(  # noqa: PLR0917
    line: str,
    words: tuple[str, ...],
    told: str,
    printed: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    nvidia_smi: Callable[[str], None],
) -> None:
    nvidia_smi(f"echo '{line}'")
    monkeypatch.setattr(doctor, "installed_engine", lambda: ("cuda", "0.32.0"))
    monkeypatch.setattr(doctor, "_SHM_GIB", 0.0)
    assert told in printed("model=[oracle,tiny]", *words)


def test_a_store_that_is_a_file_or_closed_is_told(
    printed: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "store").touch()
    rights = os.access
    monkeypatch.setattr(doctor.os, "access", lambda path, mode: Path(path) != tmp_path and rights(path, mode))
    said = printed("model=[oracle]")
    assert "FIX  disk of store: " in said
    assert "FIX  disk of outputs: " in said


def test_a_model_without_weights_is_not_ready(printed: Callable[..., str], folder: Path) -> None:
    """Its plan can be made, and its engine cannot start."""
    for weights in folder.glob("*.safetensors"):
        weights.unlink()
    said = printed("model=[tiny]", f"model.tiny.source={folder}")
    assert "FIX  model tiny: tiny: " in said
    assert "holds no weights" in said


def test_a_template_that_fails_in_any_way_is_one_line(printed: Callable[..., str], folder: Path) -> None:
    (folder / "chat_template.jinja").write_text("{{ 1 / 0 }}")
    said = printed("model=[tiny]", f"model.tiny.source={folder}")
    assert "FIX  model tiny: ZeroDivisionError: division by zero" in said


def test_an_absent_model_is_one_line(printed: Callable[..., str]) -> None:
    said = printed("model=[oracle,qwen3_vl_8b]")
    assert "FIX  model qwen3_vl_8b" in said
    assert "hf download" in said
    assert said.endswith("1 to fix before a sweep\n1")


def test_a_doctor_that_is_told_to_stop_stops(
    printed: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(spec: object) -> str:
        raise StoppedError("before Ray had started")

    monkeypatch.setattr(doctor, "_ray", stopped)
    with pytest.raises(StoppedError):
        printed("model=[oracle]")
