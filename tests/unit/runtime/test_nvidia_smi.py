"""What the driver says, and drivers that say nothing of use."""

import os
import time
from pathlib import Path

import pytest

from cardiolens.inference.engine.engine_memory import gpu_gib, wait_for_memory
from cardiolens.runtime import nvidia_smi
from cardiolens.runtime.nvidia_smi import gib, gpu_rows


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in the place of nvidia-smi, first on the path."""
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return program


def test_only_the_gpus_of_this_process_are_asked_for(driver: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver.write_text('#!/bin/sh\necho "${3:-of all}"\n')
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5")
    assert gpu_rows(("memory.total",)) == [["--id=5"]]
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert gpu_rows(("memory.total",)) == [["of all"]]


@pytest.mark.parametrize("script", ["exit 9", "echo No devices were found", "sleep 60", ""])
def test_a_driver_in_trouble_has_no_gpus(driver: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    monkeypatch.setattr(nvidia_smi, "_SECONDS", 0.3)
    driver.write_text(f"#!/bin/sh\nexec {script}\n" if script == "sleep 60" else f"#!/bin/sh\n{script}\n")
    assert gpu_rows(("memory.free", "memory.total")) == []


def test_a_gpu_without_a_memory_of_its_own_is_not_waited_for(driver: Path) -> None:
    """As drivers say of GPUs that share the machine's memory."""
    driver.write_text("#!/bin/sh\necho '[N/A], [N/A]'\n")
    assert gib("[N/A]") is None
    assert gpu_gib() == 0.0
    began = time.monotonic()
    wait_for_memory(0.9, patience=30)
    assert time.monotonic() - began < 5
