"""The working folder is no place to import from: a release or an export may hold a `yaml.py` of its maker.

`python -m` puts that folder first on Python's path, and Ray would put it first in each of its workers
(`runtime/connect.py` keeps it from that). Python looks there for its own `runpy` before any of our code runs;
the command `cardiolens` has no such gap. This module imports nothing that Python has not loaded by itself.
"""

import os
import sys

_CHECKOUT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))  # if not installed
_MARK = "CARDIOLENS_WORKING_FOLDER"  # the folder that a command dropped; its child processes drop it too


def drop_working_folder() -> None:
    """Take the working folder off the path of a command and of the processes that it starts.

    A folder that the user names in PYTHONPATH stays, and so does the project's own checkout.
    """
    folder = os.environ.get(_MARK) or (_working_folder() if _is_command() else "")
    if not folder or os.path.realpath(folder) == _CHECKOUT:
        return
    os.environ[_MARK] = folder
    os.environ["PYTHONSAFEPATH"] = "1"  # of the processes that this one starts
    if folder not in os.environ.get("PYTHONPATH", "").split(os.pathsep):
        sys.path[:] = [entry for entry in sys.path if entry not in {"", folder}]


def imports_from_working_folder() -> bool:
    """Whether this process looks for modules in its working folder."""
    return bool({"", _working_folder()} & set(sys.path))


def _is_command() -> bool:
    """Whether the command `cardiolens` runs, or Python looks for the module of `python -m cardiolens.x`."""
    return bool(sys.argv) and (sys.argv[0] == "-m" or os.path.basename(sys.argv[0]) == "cardiolens")


def _working_folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was deleted
        return ""
