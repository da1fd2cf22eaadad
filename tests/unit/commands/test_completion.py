"""Completion of the command line: bash is driven as a terminal drives it; all shells get the same words."""

import re
import subprocess
from pathlib import Path

import pytest

from cardiolens.commands.completion import script
from cardiolens.commands.help import verbs, words_of
from cardiolens.config.conf_names import legal_names

# What bash does at a Tab: it takes `=` for a word of its own, and asks the function for what may stand there.
DRIVER = r"""
source "$1"
COMP_LINE="$2"; COMP_POINT=${#2}
spaced="${2//=/ = }"; set -f; COMP_WORDS=($spaced); set +f
[[ "$2" == *" " || "$2" == *= ]] && COMP_WORDS+=("")
COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
_cardiolens 2> /dev/null
echo "${COMPREPLY[*]}"
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "cardiolens.bash"
    path.write_text(script("bash"))
    return path


@pytest.mark.parametrize(
    ("line", "offers"),
    [
        ("cardiolens sw", ["sweep"]),
        ("cardiolens sweep sel", ["selector="]),
        ("cardiolens sweep selector=clin", ["clinical"]),
        ("cardiolens sweep selector=[clinical,ran", ["[clinical,random"]),
        ("cardiolens sweep +experiment=dem", ["demo"]),
        ("cardiolens sweep +experiment=demo dataset=phantom_c", ["phantom_canonical", "phantom_ci"]),
        ("cardiolens store ver", ["verify"]),
        ("cardiolens status r", ["run="]),
        ("cardiolens status run=out", []),  # a folder: left to the shell's own completion
        ("cardiolens sweep --v", ["--version"]),
    ],
)
def test_bash_offers_verbs_words_and_names(source: Path, line: str, offers: list[str]) -> None:
    command = ["bash", "-c", DRIVER, "bash", str(source), line]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == offers, done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_holds_every_verb_word_and_name(shell: str) -> None:
    offered = set(re.split(r'[\s")]+', script(shell)))
    assert offered >= {*verbs(), *(word for verb in verbs() for word in words_of(verb))}
    names = {name for group in ("model", "selector", "experiment") for name in legal_names(group)}
    assert names <= (offered if shell != "fish" else {word.partition("=")[2] for word in offered})
