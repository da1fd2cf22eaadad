"""CardioLens: evaluation of multimodal language models on multi-sequence cardiac MRI.

`read_run` gives the tables, figures and cases of a finished run; it is loaded when it is first asked for.
Nothing but `os` is imported before the working folder is off the path.
"""

import os

from cardiolens.base.import_path import drop_working_folder

TYPE_CHECKING = False  # type checkers take it for that of `typing`
if TYPE_CHECKING:
    from cardiolens.show.notebook.run import read_run as read_run

__version__ = "0.1.0"
__all__ = ["__version__", "read_run"]

drop_working_folder()

# `python -m cardiolens.sweep` runs `cardiolens/commands/sweep.py`; a test forbids importing it by that name.
__path__.append(os.path.join(os.path.dirname(__file__), "commands"))


def __getattr__(name: str) -> object:
    if name == "read_run":
        import importlib

        return importlib.import_module("cardiolens.show.notebook.run").read_run
    raise AttributeError(f"module 'cardiolens' has no attribute {name!r}")
