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

from cardiolens import __version__
from cardiolens.base.errors import InputError
from cardiolens.base.suggest import choices, nearest_first
from cardiolens.commands.help import help_of, known_verb, overview, usage_of, verbs
from cardiolens.config.compose import check_names
from cardiolens.config.conf_names import GROUPS, legal_names, packaged_conf
from tests.unit.test_architecture import PACKAGE, VERBS

_WIDE = 400
_HEAVY = ("numpy", "scipy", "pyarrow", "ray", "hydra", "omegaconf", "nibabel", "pydicom", "rich.table")


def run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *words]
    environment = dict(os.environ) | {"PYTHONPATH": str(PACKAGE.parent)}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, check=False)


def test_every_verb_has_help_and_nothing_else_has() -> None:
    assert set(verbs()) == set(VERBS)


def test_the_overview_has_a_line_for_each_verb() -> None:
    lines = [line.split(maxsplit=1) for line in overview(_WIDE).splitlines() if line.startswith("  ")]
    assert lines == [[name, verb.does] for name, verb in verbs().items()]


@pytest.mark.parametrize("name", verbs())
def test_help_holds_what_the_verb_does_its_words_and_three_examples(name: str) -> None:
    text, verb = help_of(name, _WIDE), verbs()[name]
    assert text.startswith(f"python -m cardiolens.{name} {verb.does}")
    assert all(word in text for word in verb.words)
    for example in verb.examples:
        assert example in text
        assert f"python -m cardiolens.{name}" in example or not example.startswith("python")


@pytest.mark.parametrize("name", [name for name, verb in verbs().items() if verb.configuration])
def test_every_option_of_the_configuration_stands_in_the_help_with_its_default(name: str) -> None:
    file = verbs()[name].configuration
    entries = yaml.safe_load((packaged_conf() / f"{file}.yaml").read_text())
    text = help_of(name, _WIDE)
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


@pytest.mark.full
def test_help_is_printed_by_the_verb_itself_and_by_the_command(tmp_path: Path) -> None:
    asked = run("cardiolens.judge", "--help", cwd=tmp_path)
    through = run("cardiolens", "judge", "--help", cwd=tmp_path)
    assert asked.stdout == through.stdout == help_of("judge") + "\n"
    assert asked.returncode == through.returncode == 0
    assert asked.stderr == through.stderr == ""
    assert run("cardiolens.judge", "run=x", "-h", cwd=tmp_path).stdout == usage_of("judge") + "\n"
    assert run("cardiolens", cwd=tmp_path).stdout == overview() + "\n"
    refused = run("cardiolens", "swep", cwd=tmp_path)
    assert refused.returncode == 2
    assert refused.stderr.startswith("error: swep: no such verb; did you mean sweep? choose from ")
    failed = run("cardiolens", "judge", "run=nowhere", cwd=tmp_path)
    assert (failed.returncode, failed.stderr) == (
        2,
        run("cardiolens.judge", "run=nowhere", cwd=tmp_path).stderr,
    )


def test_the_version_is_printed_by_every_door(tmp_path: Path) -> None:
    doors = [("cardiolens", "--version"), ("cardiolens.sweep", "--version")]
    assert {run(*door, cwd=tmp_path).stdout for door in doors} == {f"cardiolens {__version__}\n"}


def test_a_sweep_without_a_word_makes_nothing_and_says_what_to_write(tmp_path: Path) -> None:
    done = run("cardiolens.sweep", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: no word says what to sweep; write for example")
    assert verbs()["sweep"].examples[0] in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["--version"], []])
def test_help_is_printed_before_anything_heavy_is_loaded(words: list[str], tmp_path: Path) -> None:
    code = (
        "import atexit, sys; "
        f"sys.orig_argv, sys.argv = ['python', '-m', 'cardiolens.sweep'], ['-m', *{words!r}]; "
        f"atexit.register(lambda: print('heavy', [name for name in {_HEAVY!r} if name in sys.modules])); "
        "import cardiolens; print('went on')"
    )
    environment = dict(os.environ) | {"PYTHONPATH": str(PACKAGE.parent)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert "heavy []" in done.stdout, done.stderr
    assert "went on" not in done.stdout


@pytest.mark.parametrize("width", [30, 40, 80, 100, 140])
@pytest.mark.parametrize("name", ["", *verbs()])
def test_help_is_no_wider_than_the_terminal(name: str, width: int) -> None:
    texts = [help_of(name, width), usage_of(name, width)] if name else [overview(width)]
    for line in "\n".join(texts).splitlines():
        is_one_word = len(line.removesuffix(" \\").removeprefix("usage: ").lstrip("# ").split()) == 1
        assert len(line) <= width or is_one_word, line


@pytest.mark.parametrize("name", verbs())
def test_narrow_help_says_all_that_wide_help_says(name: str) -> None:
    def words(text: str) -> list[str]:
        return [word for word in text.split() if word not in ("\\", "#")]

    assert sorted(words(help_of(name, 30))) == sorted(words(help_of(name, _WIDE)))


def test_an_example_that_is_wrapped_is_one_command() -> None:
    text = help_of("sweep", 40)
    wrapped = text[text.index("Examples:") :].splitlines()[1:]
    commands = "\n".join(wrapped).replace("\\\n", " ").splitlines()
    assert [shlex.split(line) for line in commands] == [
        shlex.split(line) for line in verbs()["sweep"].examples
    ]


def test_a_reader_that_leaves_at_once_is_no_error(tmp_path: Path) -> None:
    """What is short is still in the buffer when the interpreter ends, and is written only then."""
    command = f"{sys.executable} -m cardiolens --help | true; echo ${{PIPESTATUS[0]}}"
    environment = dict(os.environ) | {"PYTHONPATH": str(PACKAGE.parent)}
    environment.pop("PYTHONUNBUFFERED", None)  # with which nothing is in the buffer
    shell = ["bash", "-c", command]
    done = subprocess.run(shell, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert done.stderr == ""
    assert done.stdout.strip() == "0"


def test_an_unknown_verb_is_refused() -> None:
    with pytest.raises(InputError, match=r"did you mean judge\? choose from "):
        known_verb("jugde")


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
