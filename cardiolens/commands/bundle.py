"""`python -m cardiolens.bundle +experiment=... out=FOLDER [lock=requirements/gpu.txt]`: a sweep for offline.

The folder holds what the sweep needs on a machine without internet. `verify=FOLDER` compares the files of a
bundle with its index, e.g. after copying it.
"""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from cardiolens.base.console import say
from cardiolens.base.errors import InputError, RunError
from cardiolens.commands.command import begin, tell
from cardiolens.config.base import GivenPath, Spec
from cardiolens.config.command_words import VerifyWord, split_words, verify_word
from cardiolens.config.compose import read_spec
from cardiolens.workflow.steps.prepare_studies import is_prepared
from cardiolens.workflow.upkeep.offline_bundle import bundle, differences

_REPLACED = ("dataset", "store", "model")  # options that the bundle sets for the offline machine


class Words(Spec):
    """Words of the command, beside those of a sweep."""

    out: GivenPath  # the folder of the bundle
    lock: GivenPath | None = None  # a lock file whose wheels are bundled


def gather(words: Words, sweep_words: list[str]) -> int:
    """Make the bundle of the sweep that the words describe, and print the command that uses it."""
    spec = read_spec(sweep_words)
    if not is_prepared(spec):
        raise InputError(
            "studies are not all prepared; run python -m cardiolens.prepare with the same words first"
        )
    folder, conf = words.out, Path("conf")
    bundled = bundle(spec, folder, conf if conf.is_dir() else None, words.lock)
    say(f"bundle: {folder}, {bundled.n_files} files, {bundled.n_bytes / 2**30:.2f} GiB")
    command = shlex.join(_words_there(bundled.words, sweep_words))
    say(f"there: cd {folder.name} && HF_HOME=$PWD/hf python -m cardiolens.submit {command}")
    return 0


def _words_there(bundled: Sequence[str], sweep_words: Sequence[str]) -> list[str]:
    """The words of the sweep where the bundle is opened: its folders take the place of those given here."""
    words = {_name(word): word for word in bundled}
    for word in sweep_words:
        name = _name(word)
        if name.partition(".")[0] not in _REPLACED:
            added = "+" * (len(word) - len(word.lstrip("+")))  # of an option that the configuration lacks
            words[name] = f"{added}{words[name]}" if name in words else word
    return list(words.values())


def _name(word: str) -> str:
    """The option that a word names."""
    return word.partition("=")[0].lstrip("+")


def verify(folder: Path) -> int:
    """Print every file of a bundle that differs from its index; 0 if none does, else 1."""
    lines = list(differences(folder))
    for line in lines:
        say(line)
    say(f"{folder}: {len(lines)} files differ" if lines else f"{folder}: as gathered")
    return 1 if lines else 0


def main() -> int:
    """Gather a bundle, or verify one."""
    begin()
    words = sys.argv[1:]
    try:
        if (word := verify_word(words, VerifyWord)) is not None:
            return verify(word.verify)
        return gather(*split_words(Words, words))
    except (InputError, RunError) as error:
        return tell(error)


if __name__ == "__main__":
    sys.exit(main())
