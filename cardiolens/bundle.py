"""`python -m cardiolens.bundle +experiment=... out=FOLDER [lock=requirements/gpu.txt]`: for offline machines.

`verify=FOLDER` compares a bundle with what was gathered, e.g. after copying it.
"""

import sys
from pathlib import Path

from cardiolens.config.compose import read_spec
from cardiolens.errors import InputError, RunError
from cardiolens.steps.prepare import is_prepared
from cardiolens.store.bundle import bundle, differences, gather_wheels
from cardiolens.terminal.console import say
from cardiolens.terminal.verb import tell

_OWN = ("out", "lock")
_REPLACED = ("dataset", "store", "model")


def gather(words: list[str]) -> int:
    """Make the bundle of the sweep that these words describe, and say how to use it."""
    own = dict(word.split("=", 1) for word in words if word.partition("=")[0] in _OWN)
    asked = [word for word in words if word.partition("=")[0] not in _OWN]
    if "out" not in own:
        raise InputError("out has no value; give the folder that the bundle is to be: out=...")
    spec = read_spec(asked)
    if not is_prepared(spec):
        raise InputError(
            "studies are not all prepared; run python -m cardiolens.prepare with the same words first"
        )
    folder, conf = Path(own["out"]), Path("conf")
    if "lock" in own:
        gather_wheels(Path(own["lock"]), folder)
    made = bundle(spec, folder, conf if conf.is_dir() else None)
    kept = [word for word in asked if word.partition("=")[0].partition(".")[0] not in _REPLACED]
    say(f"bundle: {folder}, {made.n_files} files, {made.n_bytes / 2**30:.2f} GiB")
    there = " ".join([*made.words, *kept])
    say(f"there: cd {folder.name} && HF_HOME=$PWD/hf python -m cardiolens.submit {there}")
    return 0


def verify(folder: Path) -> int:
    """0 if every file of a bundle is what was gathered."""
    found = list(differences(folder))
    for line in found:
        say(line)
    say(f"{folder}: {len(found)} files differ" if found else f"{folder}: as gathered")
    return 1 if found else 0


def main() -> int:
    """Gather or verify, as the command line says."""
    words = sys.argv[1:]
    try:
        if len(words) == 1 and words[0].startswith("verify="):
            return verify(Path(words[0].removeprefix("verify=")))
        return gather(words)
    except (InputError, RunError) as error:
        return tell(error)


if __name__ == "__main__":
    sys.exit(main())
