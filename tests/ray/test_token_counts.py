"""Tokens predicted from a model's processor are those that real vLLM counts, in three more families."""

import subprocess
import sys
from pathlib import Path

import pytest

from cardiolens.inference.models.chat import Chat
from cardiolens.storage.schemas import FRAME
from tests.ray.processor_families import FAMILIES

pytestmark = pytest.mark.full

SIZES = ((448, 400), (112, 224), (96, 80))
SYSTEM = "You will see frames from one patient's study."


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_tokens_predicted_are_the_engines(family: str, tmp_path: Path):
    FAMILIES[family][0](tmp_path)
    chat = Chat(tmp_path)
    text = "".join(f"Frame {number}: cine\n{FRAME}\n" for number in (1, 2, 3)) + "How is the function?"
    words = [family, str(tmp_path), chat.prompt(SYSTEM, text), *(f"{high}x{wide}" for high, wide in SIZES)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.ray.processor_families", *words],
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout.split()[-1]) == chat.count(SYSTEM, text, SIZES)
    assert chat.count(SYSTEM, text, SIZES, exact=False) == chat.count(SYSTEM, text, SIZES)
