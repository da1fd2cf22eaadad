"""`requirements/setup.sh` says in one sentence what a machine lacks."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("bash", "basename", "cat", "dirname", "grep", "mkdir", "rm", "seq", "sha256sum")
TOO_OLD = "case $1 in -V) echo Python 3.9.2;; *) exit 1;; esac"
WITHOUT_VENV = (
    f"""exec {sys.executable} -c 'import sys; sys.modules["ensurepip"] = None; exec(sys.argv[1])' "$2" """
)
HERE = f'exec {sys.executable} "$@"'
VERSION = f"python3.{sys.version_info.minor}"


@pytest.fixture
def checkout(tmp_path):
    """What setup reads of a checkout, without an environment."""
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def machine(folder: Path, **commands: str) -> dict[str, str]:
    """The environment of a machine that has a few tools and these commands, and reaches no package index."""
    folder.mkdir()
    for tool in TOOLS:
        (folder / tool).symlink_to(str(shutil.which(tool)))
    for name, script in commands.items():
        (folder / name).write_text(f"#!{shutil.which('bash')}\n{script}\n")
        (folder / name).chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    return {**kept, "PATH": str(folder), "PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1"}


def fails(checkout: Path, environment: dict[str, str]) -> str:
    """The last line of a setup that fails."""
    done = subprocess.run(
        ["bash", "requirements/setup.sh"],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("commands", "sentence"),
    [
        (
            {"python3": WITHOUT_VENV},
            f"error: {VERSION} has no venv module; install it with: sudo apt-get install {VERSION}-venv",
        ),
        (
            {"python3": TOO_OLD},
            "error: CardioLens runs on Python 3.11 to 3.14, and here is Python 3.9.2; install",
        ),
        ({}, "error: CardioLens runs on Python 3.11 to 3.14, and here is none; install"),
    ],
)
def test_setup_names_what_python_lacks(checkout, tmp_path, commands, sentence):
    assert fails(checkout, machine(tmp_path / "bin", **commands)).startswith(sentence)
    assert not (checkout / ".venv").exists()


def test_setup_passes_over_a_python_that_is_too_old(checkout, tmp_path):
    commands = {"python3": TOO_OLD, "python3.11": WITHOUT_VENV}
    assert "has no venv module" in fails(checkout, machine(tmp_path / "bin", **commands))


def test_setup_leaves_a_foreign_environment_alone(checkout, tmp_path):
    (checkout / ".venv").mkdir()
    said = fails(checkout, machine(tmp_path / "bin", python3=HERE))
    assert said == "error: .venv is not one that this script made; move it away and run this again"


@pytest.mark.full
def test_setup_says_what_to_do_where_torch_cannot_be_had(checkout, tmp_path):
    (checkout / "requirements" / "build.txt").write_text("")  # nothing to fetch before torch
    said = fails(checkout, machine(tmp_path / "bin", python3=HERE))
    assert said.startswith("error: the CPU build torch==")
    assert (
        "bring its wheel from a machine that reaches that address and name its folder: PIP_FIND_LINKS="
        in said
    )
