"""Engines wait for memory that an earlier engine is giving back."""

import os
import time
from pathlib import Path

import pytest

from cardiolens.inference.engine.engine_memory import wait_for_memory


@pytest.mark.parametrize(("free", "waits"), [(20_000, True), (72_000, False)])
def test_memory_is_waited_for_as_long_as_patience_lasts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, waits: bool
):
    """A program in the place of nvidia-smi says what is free; none: nothing to wait for."""
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\necho '80000, 80000'\necho '{free}, 80000'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    began = time.monotonic()
    wait_for_memory(0.9, patience=0.5)
    assert (time.monotonic() - began >= 0.5) == waits


def test_without_a_driver_nothing_is_waited_for():
    began = time.monotonic()
    wait_for_memory(0.9, patience=30)
    assert time.monotonic() - began < 5
