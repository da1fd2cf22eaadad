"""The tutorial does what it says: its files are written and its commands run, in order."""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "get-started" / "tutorial.md").read_text()


class Block(NamedTuple):
    language: str
    said: str  # after the language: title="<path>" of a file, or title="refused" of commands
    content: str


def blocks() -> Iterator[Block]:
    for found in re.finditer(r"^```(\w+) ?([^\n]*)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL):
        yield Block(*found.groups())


def test_every_block_is_a_file_or_is_run() -> None:
    assert {block.language for block in blocks() if not block.said} == {"text", "sh", "python"}
    titled = [block for block in blocks() if block.said.startswith("title=")]
    assert {block.language for block in titled} == {"json", "yaml", "sh", "python"}


@contextmanager
def serving(command: str, folder: Path, environment: dict[str, str], port: int) -> Iterator[None]:
    """The server of the page, on a port of its own."""
    server = subprocess.Popen(["bash", "-c", f"exec {command}"], cwd=folder, env=environment)
    try:
        while True:
            assert server.poll() is None, "the server of the page has ended"
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.1)
        yield
    finally:
        server.terminate()
        server.wait(60)


@pytest.mark.full
def test_the_tutorial_from_its_first_command_to_its_last(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    beside = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "CARDIOLENS": str(ROOT)}
    environment = os.environ | beside | {"PYTHONPATH": str(ROOT)}
    printed = ""
    with ExitStack() as stack:
        for language, said, written in blocks():
            content = written.replace("8001", str(port))
            title = said.removeprefix('title="').removesuffix('"')
            if language == "text":
                continue
            if title == "server":
                stack.enter_context(serving(content, tmp_path, environment, port))
            elif language != "sh" and title:
                (tmp_path / title).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / title).write_text(content)
            else:
                shell = ["bash", "-ec"] if language == "sh" else [sys.executable, "-c"]
                done = subprocess.run(
                    [*shell, content],
                    cwd=tmp_path,
                    env=environment,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                assert bool(done.returncode) == (title == "refused"), done.stdout + done.stderr
                printed += done.stdout + done.stderr
    assert "S001: study.json: patient_id" in printed, "the refusal names the field"
    assert "requests: 160 asked, 111 unique, 111 executed" in printed
    assert re.search(r"^my_model: 31 of 31 requests", printed, re.M)
    assert re.search(r"^my_model +\d+\.\d +\d+\.\d$", printed, re.M), "its headlines"
    assert "S003:L02" in printed
    assert list(tmp_path.glob("outputs/first-*/index.html"))
