"""The doctor: a line for each thing, its remedy where a sweep would fail, and a truthful exit code."""

import os
import sysconfig
from pathlib import Path

import pytest

from cardiolens.config.compose import read_spec
from cardiolens.config.sweep import SweepSpec
from cardiolens.workflow.doctor import examine as examination
from cardiolens.workflow.doctor import machine_checks as machine
from cardiolens.workflow.doctor.check import Check
from cardiolens.workflow.doctor.examine import examine
from cardiolens.workflow.doctor.machine_checks import cuda_of_torch, machine_checks


@pytest.fixture
def spec(tmp_path: Path) -> SweepSpec:
    return read_spec(
        ["model=[oracle]", "dataset=phantom_ci", f"store={tmp_path}/store", f"outputs={tmp_path}/outputs"]
    )


def checks_with(
    spec: SweepSpec, monkeypatch: pytest.MonkeyPatch, folder: Path, lines: tuple[str, ...], cuda: str = "13.0"
) -> dict[str, Check]:
    """The checks of a machine whose driver prints these lines, each of name, driver, free and total MiB."""
    (folder / "bin").mkdir()
    smi = folder / "bin" / "nvidia-smi"
    smi.write_text("#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in lines))
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setattr(machine, "_nccl", lambda gpus: Check("NCCL", "ok", f"{gpus} GPUs sum"))
    return {check.subject: check for check in machine_checks(spec, cuda)}


def test_a_machine_with_gpus_is_ready(
    spec: SweepSpec, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lines = ("NVIDIA H100, 580.65.06, 80000, 81559", "NVIDIA H100, 580.65.06, 80000, 81559")
    checks = checks_with(spec, monkeypatch, tmp_path, lines)
    assert {checks[name].state for name in ("driver", "GPU 0", "GPU 1", "NCCL", "/dev/shm")} == {"ok"}
    assert "78.1 of 79.6 GiB free" in checks["GPU 0"].text


@pytest.mark.parametrize(
    ("line", "cuda", "told"),
    [
        ("A100, 535.104.05, 80000, 81559", "13.0", ("driver", "too old for CUDA 13.0; ask for r580")),
        ("A100, 510.39, 80000, 81559", "12.9", ("driver", "ask for r525")),
        ("A100, 580.65, 20000, 81559", "13.0", ("GPU 0", "an engine wants 90%")),
        ("", "13.0", ("GPUs", "lists none")),
    ],
)
def test_what_a_gpu_lacks_is_told_with_its_remedy(
    line: str, cuda: str, told: tuple[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    spec = read_spec(["model=[oracle]"])
    check = checks_with(spec, monkeypatch, tmp_path, (line,) * bool(line), cuda)[told[0]]
    assert (check.state, told[1] in check.text) == ("fix", True), check


def test_a_compiler_without_pythons_headers_does_not_suffice(
    spec: SweepSpec, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CC", "/usr/bin/cc")
    monkeypatch.setattr(sysconfig, "get_paths", lambda: {"include": str(tmp_path)})
    assert "python3-dev" in checks_with(spec, monkeypatch, tmp_path, ("A, 580.1, 9, 9",))["compiler"].text


def test_a_container_without_shared_memory_and_a_folder_without_rights(
    spec: SweepSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "_SHM_GIB", 1e6)
    monkeypatch.setattr(machine.os, "access", lambda path, mode: "tmp" not in str(path))
    checks = {check.subject: check for check in machine_checks(spec, None)}
    assert "--shm-size" in checks["/dev/shm"].text
    assert checks["disk of store"].state == "fix"


@pytest.mark.parametrize(
    ("number", "cuda"),
    [("2.11.0+cu130", "13.0"), ("2.9.1+cu128", "12.8"), ("2.11.0+cpu", None), ("2.11.0", None)],
)
def test_the_cuda_of_torch_is_in_its_version(
    number: str, cuda: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "version", lambda package: number)
    assert cuda_of_torch() == cuda


def test_gpus_that_cannot_sum_are_told_with_the_last_line_of_the_error() -> None:
    """Here without any GPU, so that torch refuses."""
    check = machine._nccl(2)
    assert check.state == "fix"
    assert "NCCL_DEBUG=INFO" in check.text


def test_an_absent_model_is_one_line_and_the_exit_code_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("cardiolens.workflow.doctor.part_checks._cluster", lambda spec: "on this machine")
    places = [f"store={tmp_path}/store", f"outputs={tmp_path}/outputs", "dataset=phantom_ci", "tracker=none"]
    assert examine(read_spec(["model=[oracle,tiny]", *places])) == 0
    printed = capsys.readouterr().out
    assert "ok   model tiny, chat template: tokenizer and template load" in printed
    assert "note data set phantom_ci: not prepared yet" in printed
    assert examine(read_spec(["model=[oracle,qwen3_vl_8b]", *places])) == 1
    printed = capsys.readouterr().out
    assert "FIX  model qwen3_vl_8b" in printed
    assert "hf download" in printed
    assert printed.splitlines()[-1] == "1 to fix before a sweep"


def test_a_sweep_without_vllm_needs_none(monkeypatch: pytest.MonkeyPatch, spec: SweepSpec) -> None:
    monkeypatch.setattr(examination, "installed_engine", lambda: pytest.fail("not needed"))
    assert examination._engine(spec)[0].state == "ok"
