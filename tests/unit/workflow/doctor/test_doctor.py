"""The doctor: a line for each thing, its remedy where a sweep would fail, and a truthful exit code."""

import errno
import os
import shutil
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from cardiolens.config.compose import read_spec
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.models import embedded
from cardiolens.runtime.stopping import StoppedError
from cardiolens.workflow.doctor import examine as examination
from cardiolens.workflow.doctor import machine_checks as machine
from cardiolens.workflow.doctor.check import Check, check_of
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
    spec = read_spec(["model=[tiny]"])
    check = checks_with(spec, monkeypatch, tmp_path, (line,) * bool(line), cuda)[told[0]]
    assert (check.state, told[1] in check.text) == ("fix", True), check


def test_a_compiler_without_pythons_headers_does_not_suffice(
    spec: SweepSpec, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CC", sys.executable)
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


def test_a_compiler_that_is_not_there_is_none(
    spec: SweepSpec, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CC", "/nowhere/gcc")
    compiler = checks_with(spec, monkeypatch, tmp_path, ("A, 580.1, 9, 9",))["compiler"]
    assert (compiler.state, "CC=/nowhere/gcc is no program" in compiler.text) == ("fix", True)


@pytest.mark.parametrize(
    ("file", "cuda"),
    [
        ("__version__ = '2.13.0+cu130'\ncuda: Optional[str] = '13.0'\nhip = None\n", "13.0"),
        ("cuda = '12.8'\n", "12.8"),
        ("cuda: Optional[str] = None\n", None),
        (None, None),
    ],
)
def test_the_cuda_of_torch_is_what_its_own_file_says(
    file: str | None, cuda: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The package's number does not: the locks take torch from an index where it is 2.13.0 alone."""
    if file is not None:
        (tmp_path / "version.py").write_text(file)
    origin = SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(machine, "find_spec", lambda package: origin)
    assert cuda_of_torch() == cuda


def test_an_engine_for_cuda_is_never_examined_without_its_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = read_spec(["model=[tiny]"])
    monkeypatch.setattr(examination, "installed_engine", lambda: ("cuda", "0.32.0"))
    monkeypatch.setattr(examination, "cuda_of_torch", lambda: "13.0")
    assert examination._engine(spec)[1] == "13.0"
    monkeypatch.setattr(examination, "cuda_of_torch", lambda: None)
    check, _ = examination._engine(spec)
    assert (check.state, "torch is not" in check.text) == ("fix", True)


@pytest.mark.full
def test_gpus_that_cannot_sum_are_told_with_the_last_line_of_the_error() -> None:
    """Here without any GPU, so that torch refuses; each process finds what it is to do."""
    check = machine._nccl(2)
    assert check.state == "fix"
    assert "NCCL_DEBUG=INFO" in check.text
    assert "cuda" in check.text.casefold(), check.text


@pytest.mark.long
def test_as_many_processes_as_gpus_sum() -> None:
    assert machine._nccl(2, "gloo") == Check("NCCL", "ok", "2 GPUs sum")


@pytest.mark.parametrize(
    ("words", "state"),
    [
        ((), "fix"),
        (("+model.tiny.fraction=0.25",), "ok"),
        (("+model.tiny.gpu_memory_utilization=0.3",), "ok"),
    ],
)
def test_as_much_memory_must_be_free_as_the_models_of_the_sweep_want(
    words: tuple[str, ...], state: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    spec = read_spec(["model=[oracle,tiny]", *words])
    checks = checks_with(spec, monkeypatch, tmp_path, ("A, 580.1, 40000, 81559",))
    assert checks["GPU 0"].state == state


@pytest.mark.parametrize(
    "line", ["GB10, 580.95, [N/A], [N/A]", "GB10, [N/A], [N/A], [N/A]", "No devices were found"]
)
def test_a_driver_that_tells_less_is_no_traceback(
    line: str, spec: SweepSpec, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    checks = checks_with(spec, monkeypatch, tmp_path, (line,))
    if "580" in line:
        assert (checks["GPU 0"].state, checks["driver"].state) == ("note", "ok")
        assert "cluster.gpu_memory_gib" in checks["GPU 0"].text
    else:
        assert "fix" in {checks[name].state for name in ("driver", "GPUs") if name in checks}


def test_a_store_that_is_a_file_or_closed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    closed = tmp_path / "closed"
    closed.mkdir()
    spec = read_spec(["model=[oracle]", f"store={tmp_path}/file", f"outputs={closed}/outputs"])
    rights = os.access
    monkeypatch.setattr(machine.os, "access", lambda path, mode: Path(path) != closed and rights(path, mode))
    checks = {check.subject: check for check in machine_checks(spec, None)}
    assert (checks["disk of store"].state, checks["disk of outputs"].state) == ("fix", "fix")
    assert "no folder" in checks["disk of store"].text


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "model"
    embedded.build(folder)
    return folder


@pytest.fixture
def folder(built: Path, tmp_path: Path) -> Path:
    """A model's files, to be damaged."""
    return Path(shutil.copytree(built, tmp_path / "model"))


@pytest.fixture
def doctor_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[Path], str]:
    """What the doctor prints of a model with these files."""
    monkeypatch.setattr("cardiolens.workflow.doctor.part_checks._cluster", lambda spec: "on this machine")

    def printed(folder: Path) -> str:
        words = ["model=[tiny]", f"model.tiny.source={folder}", "dataset=phantom_ci", "tracker=none"]
        assert examine(read_spec([*words, f"store={tmp_path}/store", f"outputs={tmp_path}/outputs"])) == 1
        return capsys.readouterr().out

    return printed


def test_a_model_without_weights_is_not_ready(doctor_of: Callable[[Path], str], folder: Path) -> None:
    """Its plan can be made, and its engine cannot start."""
    for weights in folder.glob("*.safetensors"):
        weights.unlink()
    assert "FIX  model tiny: tiny: " in (printed := doctor_of(folder))
    assert "holds no weights" in printed
    assert printed.endswith("1 to fix before a sweep\n")


def test_a_template_that_fails_in_any_way_is_one_line(doctor_of: Callable[[Path], str], folder: Path) -> None:
    (folder / "chat_template.jinja").write_text("{{ 1 / 0 }}")
    assert "FIX  model tiny, chat template: ZeroDivisionError: division by zero" in doctor_of(folder)


def test_a_file_that_may_not_be_read_is_one_line(
    doctor_of: Callable[[Path], str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    def locked(file: Path) -> str:
        raise PermissionError(errno.EACCES, "Permission denied", str(file))

    monkeypatch.setattr("cardiolens.inference.models.digest_cache.sha256_of", locked)
    assert "Permission denied; change its permissions" in doctor_of(folder)


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


def test_a_doctor_that_is_told_to_stop_stops() -> None:
    def stopped() -> str:
        raise StoppedError("before Ray had started")

    with pytest.raises(StoppedError):
        check_of("Ray", stopped)


def test_a_sweep_without_vllm_needs_none(monkeypatch: pytest.MonkeyPatch, spec: SweepSpec) -> None:
    monkeypatch.setattr(examination, "installed_engine", lambda: pytest.fail("not needed"))
    assert examination._engine(spec)[0].state == "ok"
