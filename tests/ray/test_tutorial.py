"""The tutorial does what it says: its files are written and its commands run, in order."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from cardiolens.commands.help import VERBS

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
    assert {block.language for block in titled} == {"json", "yaml", "sh"}


def test_its_verbs_are_verbs() -> None:
    named = set(re.findall(r"python -m cardiolens\.(\w+)", TEXT))
    assert len(named) > 5
    assert named <= {verb for group in VERBS.values() for verb in group}


def test_the_site_begins_with_it() -> None:
    site = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    assert {"Tutorial": "get-started/tutorial.md"} in yaml.safe_load(site)[1]["Get started"]


@pytest.mark.ray
@pytest.mark.long
def test_the_tutorial_from_its_first_command_to_its_last(tmp_path: Path) -> None:
    beside = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "CARDIOLENS": str(ROOT)}
    environment = os.environ | beside | {"PYTHONPATH": str(ROOT)}
    printed = ""
    for block in blocks():
        path = re.fullmatch(r'title="(.+)"', block.said)
        if path and block.language != "sh":
            (tmp_path / path[1]).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path[1]).write_text(block.content)
        elif block.language != "text":
            shell = ["bash", "-ec"] if block.language == "sh" else [sys.executable, "-c"]
            done = subprocess.run(
                [*shell, block.content],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            assert bool(done.returncode) == (block.language == "sh" and path is not None), (
                done.stdout + done.stderr
            )
            printed += done.stdout + done.stderr
    assert "transpose + flip_rows" in printed, "the refusal names the remedy"
    assert "oracle: 16 of 16 requests" in printed
    assert "S001:L01" in printed
    assert list(tmp_path.glob("outputs/first-*/index.html"))
