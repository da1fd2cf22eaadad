"""Help of the verbs: complete, in step with the configuration, and made of commands that are understood."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cardiolens.base.errors import InputError
from cardiolens.base.suggest import nearest_first
from cardiolens.commands.help import help_of, known_verb, overview, verbs
from cardiolens.config.compose import GROUPS, check_names, legal_names, packaged_conf
from tests.unit.test_architecture import PACKAGE, VERBS


def run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *words]
    environment = dict(os.environ) | {"PYTHONPATH": str(PACKAGE.parent)}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, check=False)


def test_every_verb_has_help_and_nothing_else_has() -> None:
    assert set(verbs()) == set(VERBS)


def test_the_overview_has_a_line_for_each_verb() -> None:
    lines = [line.split(maxsplit=1) for line in overview().splitlines() if line.startswith("  ")]
    assert lines == [[name, verb.does] for name, verb in verbs().items()]


@pytest.mark.parametrize("name", verbs())
def test_help_holds_what_the_verb_does_its_words_and_three_examples(name: str) -> None:
    text, verb = help_of(name), verbs()[name]
    assert text.startswith(f"python -m cardiolens.{name} {verb.does}")
    assert all(word in text for word in verb.words)
    for example in verb.examples:
        assert example in text
        assert f"python -m cardiolens.{name}" in example or not example.startswith("python")


@pytest.mark.parametrize("name", [name for name, verb in verbs().items() if verb.configuration])
def test_every_option_of_the_configuration_stands_in_the_help_with_its_default(name: str) -> None:
    file = verbs()[name].configuration
    entries = yaml.safe_load((packaged_conf() / f"{file}.yaml").read_text())
    text = help_of(name)
    for option in entries.keys() - {"hydra", "defaults"}:
        assert f"\n  {option}:" in text, option
    assert "hydra" not in text.replace("--hydra-help", "")
    if file == "sweep":
        assert all(legal in text for group in GROUPS for legal in legal_names(group))


@pytest.mark.parametrize(
    "example",
    [example for verb in verbs().values() if verb.configuration == "sweep" for example in verb.examples],
)
def test_examples_name_what_there_is(example: str) -> None:
    words = shlex.split(example, comments=True)[3:]
    check_names([word for word in words if not word.startswith(("out=", "lock=", "verify="))])


def test_help_is_printed_by_the_verb_itself_and_by_the_command(tmp_path: Path) -> None:
    asked = run("cardiolens.judge", "--help", cwd=tmp_path)
    through = run("cardiolens", "judge", "-h", cwd=tmp_path)
    assert asked.stdout == through.stdout == help_of("judge") + "\n"
    assert asked.returncode == through.returncode == 0
    assert asked.stderr == through.stderr == ""
    assert run("cardiolens", cwd=tmp_path).stdout == overview() + "\n"
    refused = run("cardiolens", "swep", cwd=tmp_path)
    assert refused.returncode == 2
    assert refused.stderr.startswith("error: swep: no such verb; choose from sweep, ")
    failed = run("cardiolens", "judge", "run=nowhere", cwd=tmp_path)
    assert (failed.returncode, failed.stderr) == (
        2,
        run("cardiolens.judge", "run=nowhere", cwd=tmp_path).stderr,
    )


def test_an_unknown_verb_is_refused() -> None:
    with pytest.raises(InputError, match="choose from judge, "):
        known_verb("jugde")


@given(st.text(max_size=12), st.lists(st.text(max_size=12), unique=True))
def test_nearest_first_keeps_every_name(name: str, legal: list[str]) -> None:
    assert sorted(nearest_first(name, legal)) == sorted(legal)
    if name in legal:
        assert nearest_first(name, legal)[0] == name
