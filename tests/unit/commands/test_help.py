"""Help of the verbs: made of the typed options, listed in groups, printed by every door."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardiolens import __version__
from cardiolens.base.errors import InputError
from cardiolens.base.phrasing import choices, nearest_first
from cardiolens.commands.help import VERBS, known_verb, options_of, remarks
from cardiolens.config.conf_names import GROUPS, legal_names
from cardiolens.config.sweep import SweepSpec
from cardiolens.storage.places import RunWord
from tests.unit.test_architecture import PACKAGE
from tests.unit.test_architecture import VERBS as MODULES

LISTED = [verb for group in VERBS.values() for verb in group]


def run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *words]
    environment = dict(os.environ) | {"PYTHONPATH": str(PACKAGE.parent), "COLUMNS": "200"}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, check=False)


def test_at_most_17_verbs_are_listed_in_groups_with_a_line_each(tmp_path: Path) -> None:
    assert len(LISTED) == len(set(LISTED)) <= 17
    assert set(LISTED) <= set(MODULES)
    text = run("cardiolens", cwd=tmp_path).stdout
    for title, verbs in VERBS.items():
        assert f"{title}:" in text
        for verb in verbs:
            (line,) = [line for line in text.splitlines() if line.split()[:1] == [verb]]
            assert len(line.split()) > 2


def test_help_names_every_option_with_its_default_and_meaning() -> None:
    assert list(options_of(RunWord)) == [
        ("run", "required", remarks(RunWord)["run"]),
        ("store", "", remarks(RunWord)["store"]),
    ]
    options = {name: default for name, default, _ in options_of(SweepSpec)}
    assert options["statistics.resamples"] == "2000"
    assert {name.partition(".")[0] for name in options} == set(SweepSpec.model_fields)


@pytest.mark.full
@pytest.mark.parametrize("verb", [verb for verb in MODULES if verb != "train_reader"])
def test_every_verb_prints_its_help_and_does_nothing(verb: str, tmp_path: Path) -> None:
    done = run(f"cardiolens.{verb}", "--help", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"python -m cardiolens.{verb}")
    assert run("cardiolens", verb, "run=x", "-h", cwd=tmp_path).stdout == done.stdout
    assert not list(tmp_path.iterdir())


def test_help_of_a_sweep_lists_the_names_of_every_group(tmp_path: Path) -> None:
    text = run("cardiolens", "sweep", "--help", cwd=tmp_path).stdout
    for group in GROUPS:
        assert all(name in text for name in legal_names(group))


def test_a_sweep_without_a_word_makes_nothing_and_says_what_to_write(tmp_path: Path) -> None:
    done = run("cardiolens.sweep", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: no option says what to do; give e.g. +experiment=demo")
    assert not list(tmp_path.iterdir())


@pytest.mark.full
def test_the_version_is_printed_by_every_door(tmp_path: Path) -> None:
    doors = [("cardiolens", "--version"), ("cardiolens.sweep", "--version")]
    assert {run(*door, cwd=tmp_path).stdout for door in doors} == {f"cardiolens {__version__}\n"}


def test_an_unknown_verb_is_refused() -> None:
    for name in ("jugde", "../x", ""):
        with pytest.raises(InputError, match=r"no such verb; .*choose from "):
            known_verb(name)


def test_a_reader_that_leaves_at_once_is_no_error(tmp_path: Path) -> None:
    """What is short is still in the buffer when the interpreter ends, and is written only then."""
    command = f"{sys.executable} -m cardiolens --help | true; echo ${{PIPESTATUS[0]}}"
    environment = dict(os.environ) | {"PYTHONPATH": str(PACKAGE.parent)}
    environment.pop("PYTHONUNBUFFERED", None)  # with which nothing is in the buffer
    shell = ["bash", "-c", command]
    done = subprocess.run(shell, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert done.stderr == ""
    assert done.stdout.strip() in {"0", "1"}


def test_what_was_meant_stands_before_a_list_that_is_no_wall() -> None:
    sentence = choices("clincal", [f"name{number}" for number in range(48)] + ["clinical"], "see --help")
    assert sentence.startswith("did you mean clinical? choose from clinical, name0, ")
    assert sentence.endswith("name6, ... (49 in all: see --help)")
    assert choices("x", ["a", "b"]) == "choose from a, b"


@given(st.text(max_size=12), st.lists(st.text(max_size=12), unique=True))
def test_nearest_first_keeps_every_name(name: str, legal: list[str]) -> None:
    assert sorted(nearest_first(name, legal)) == sorted(legal)
    if name in legal:
        assert nearest_first(name, legal)[0] == name


@pytest.mark.full
@pytest.mark.parametrize(
    "script",
    [
        path
        for folder in ("jobs", "examples")
        for path in sorted((PACKAGE.parent / folder).glob("*.py"))
        if "__main__" in path.read_text()
    ],
    ids=lambda path: path.name,
)
def test_a_script_prints_what_it_does_and_makes_nothing(script: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(script), "--help"]
    environment = dict(os.environ) | {"PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{script.parent.name}/{script.name}" in done.stdout
    assert not list(tmp_path.iterdir())
