"""The working folder is no place to import from: a release or an export may hold a `yaml.py` of its maker.

`python -m` puts that folder first on Python's path, and Ray would put it first in each of its workers
(`runtime/connect.py` keeps it from that). Python looks there for its own `runpy` and `functools` before any
of our code runs; the command `cardiolens` has no such gap. This module imports nothing that Python has not
loaded by itself.
"""

import os
import sys

_CHECKOUT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))  # if not installed
_TAKES_VALUE = "cmWX"  # options of the interpreter
_MARK = "CARDIOLENS_WORKING_FOLDER"  # the folder that a command dropped; its child processes drop it too


def drop_working_folder() -> None:
    """Take the working folder off the path of a command of ours and of the processes that it starts.

    A folder that the user names in PYTHONPATH stays, and so does the project's own checkout. The process ends
    with a sentence if a module was loaded from the folder already.
    """
    if not _is_command() and not os.environ.get(_MARK):
        return  # somebody else's program, which may keep its modules where it likes
    folder = os.environ.get(_MARK) or _working_folder()
    if not folder or os.path.realpath(folder) == _CHECKOUT:
        return
    os.environ[_MARK] = folder
    os.environ["PYTHONSAFEPATH"] = "1"  # of the processes that this one starts
    if folder in os.environ.get("PYTHONPATH", "").split(os.pathsep):
        return
    sys.path[:] = [entry for entry in sys.path if entry not in {"", folder}]
    if strangers := _loaded_from(os.path.realpath(folder)):
        raise SystemExit(
            f"error: {strangers[0]}: was imported in place of an installed module; delete it, or work in "
            "another folder, and use the command cardiolens in place of python -m"
        )


def imports_from_working_folder() -> bool:
    """Whether this process looks for modules in its working folder."""
    return bool({"", _working_folder()} & set(sys.path))


def command_module() -> str:
    """The module that Python imports this package for, `cardiolens.sweep` of `python -m`; empty if none."""
    return _module_of(sys.orig_argv[1:]) if sys.argv[:1] == ["-m"] else ""


def _is_command() -> bool:
    """Whether the command `cardiolens` runs, or Python imports this package for `python -m cardiolens.x`."""
    if sys.argv[:1] == ["-m"]:
        return command_module().partition(".")[0] == "cardiolens"
    return bool(sys.argv) and os.path.basename(sys.argv[0]) == "cardiolens"


def _module_of(words: list[str]) -> str:
    """The module that the words of an interpreter name: `-m x`, `-um x`, `-mx`; empty if they name none."""
    rest = iter(words)
    for word in rest:
        if word[:1] != "-" or word[:2] == "--":
            if word == "--check-hash-based-pycs":
                next(rest, None)
            continue
        for at, option in enumerate(word[1:], start=2):
            if option in _TAKES_VALUE:
                value = word[at:] or next(rest, "")
                if option == "m":
                    return value
                break
    return ""


def _working_folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # it was deleted
        return None


def _loaded_from(folder: str) -> list[str]:
    """Files of loaded modules that lie in a folder or its packages, other installed folders excepted."""
    installed = [os.path.realpath(entry) for entry in (*sys.path, _CHECKOUT) if entry]
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    paths = sorted({os.path.realpath(name) for name in files if isinstance(name, str)})
    return [
        path
        for path in paths
        if _lies_in(path, folder) and not any(_lies_in(path, entry) for entry in installed)
    ]


def _lies_in(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip(os.sep) + os.sep)
