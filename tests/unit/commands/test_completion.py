"""Completion of the command line: each shell is driven as a terminal drives it, and offers the same words."""

import re
import shutil
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


# What zsh offers is what its builtin would add: it says so in place of adding it. The line is typed on a
# terminal of its own.
ZSH_DRIVER = r"""
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS2=; unsetopt prompt_sp; autoload -Uz compinit; compinit -D -u; source ${(q)1}"
zpty -w shell 'compadd() { local -a hits; builtin compadd -A hits "$@"
  print -r -- "" "<$IPREFIX"${^hits}">" }'
zpty -w shell 'leave() { print "" "<"end">"; exit }; zle -N leave'
zpty -w shell 'bindkey "^I" complete-word; bindkey "^X" leave'
zpty -w shell 'PROMPT="<"ready">"'
local output
zpty -r shell output '*<ready>*'
zpty -w -n shell "$2"$'\t\x18'
zpty -r shell output '*<end>*'
print -r -- $output
"""
LINES = [  # of every shell; a folder is left to the shell's own completion
    ("cardiolens sw", ["sweep"]),
    ("cardiolens sweep sel", ["selector="]),
    ("cardiolens sweep selector=clin", ["selector=clinical"]),
    ("cardiolens sweep +experiment=dem", ["+experiment=demo"]),
    (
        "cardiolens sweep +experiment=demo dataset=phantom_c",
        ["dataset=phantom_canonical", "dataset=phantom_ci"],
    ),
    ("cardiolens store ver", ["verify"]),
    ("cardiolens status r", ["run="]),
    ("cardiolens status run=out", []),
    ("cardiolens sweep --v", ["--version"]),
]
BARE_LIST = "cardiolens sweep selector=[clinical,ran"
QUOTED_LIST = "cardiolens sweep 'selector=[clinical,ran"
IN_LIST = ["selector=[clinical,random"]


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("completion")
    for shell in ("bash", "zsh", "fish"):
        (folder / shell).write_text(script(shell))
    return folder


def printed(folder: Path, *command: str) -> str:
    """What a command prints in an empty folder; it must end well and complain about nothing."""
    folder.joinpath("empty").mkdir(exist_ok=True)
    done = subprocess.run(
        command, cwd=folder / "empty", capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr == ""
    return done.stdout


def needs(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} on this machine: apt-get install {shell}")


@pytest.mark.parametrize(("line", "offers"), [*LINES, (BARE_LIST, IN_LIST)])
def test_bash_offers_verbs_words_and_names(scripts: Path, line: str, offers: list[str]) -> None:
    after_equals = [offer.rpartition("=")[2] if "=" in line else offer for offer in offers]
    assert printed(scripts, "bash", "-c", DRIVER, "bash", str(scripts / "bash"), line).split() == after_equals


@pytest.mark.parametrize(("line", "offers"), [*LINES, (BARE_LIST, IN_LIST), (QUOTED_LIST, IN_LIST)])
def test_fish_offers_verbs_words_and_names(scripts: Path, line: str, offers: list[str]) -> None:
    needs("fish")
    driver = 'source $argv[1]; complete -C "$argv[2]"'
    assert (
        printed(scripts, "fish", "--no-config", "-c", driver, str(scripts / "fish"), line).split() == offers
    )


@pytest.mark.parametrize(("line", "offers"), [*LINES, (QUOTED_LIST, IN_LIST)])
def test_zsh_offers_verbs_words_and_names(scripts: Path, line: str, offers: list[str]) -> None:
    needs("zsh")
    output = printed(scripts, "zsh", "-f", "-c", ZSH_DRIVER, "zsh", str(scripts / "zsh"), line)
    assert re.findall(r" <([^>]+)>", output) == [*offers, "end"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_holds_every_verb_word_and_name(shell: str) -> None:
    offered = set(re.split(r'[\s")]+', script(shell)))
    assert offered >= {*verbs(), *(word for verb in verbs() for word in words_of(verb))}
    names = {name for group in ("model", "selector", "experiment") for name in legal_names(group)}
    assert names <= offered
