"""`python -m cardiolens.bundle +experiment=... out=FOLDER [lock=requirements/gpu.txt]`: for offline machines.

`verify=FOLDER` compares the files of a bundle with its index, e.g. after copying it.
"""

import sys
from pathlib import Path

from cardiolens.base.console import say
from cardiolens.base.errors import InputError, RunError
from cardiolens.commands.command import begin, tell
from cardiolens.config.compose import read_spec
from cardiolens.workflow.steps.prepare_studies import is_prepared
from cardiolens.workflow.upkeep.offline_bundle import bundle, differences, gather_wheels

_OPTIONS = ("out", "lock")
_REPLACED = ("dataset", "store", "model")


def gather(words: list[str]) -> int:
    """Make the bundle of the sweep that the words describe, and print the command that uses it."""
    options = dict(word.split("=", 1) for word in words if word.partition("=")[0] in _OPTIONS)
    sweep_words = [word for word in words if word.partition("=")[0] not in _OPTIONS]
    if "out" not in options:
        raise InputError("out has no value; give the folder that the bundle is to be: out=...")
    spec = read_spec(sweep_words)
    if not is_prepared(spec):
        raise InputError(
            "studies are not all prepared; run python -m cardiolens.prepare with the same words first"
        )
    folder, conf = Path(options["out"]), Path("conf")
    if "lock" in options:
        gather_wheels(Path(options["lock"]), folder)
    bundled = bundle(spec, folder, conf if conf.is_dir() else None)
    unchanged = [word for word in sweep_words if word.partition("=")[0].partition(".")[0] not in _REPLACED]
    say(f"bundle: {folder}, {bundled.n_files} files, {bundled.n_bytes / 2**30:.2f} GiB")
    command = " ".join([*bundled.words, *unchanged])
    say(f"there: cd {folder.name} && HF_HOME=$PWD/hf python -m cardiolens.submit {command}")
    return 0


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
        if len(words) == 1 and words[0].startswith("verify="):
            return verify(Path(words[0].removeprefix("verify=")))
        return gather(words)
    except (InputError, RunError) as error:
        return tell(error)


if __name__ == "__main__":
    sys.exit(main())
