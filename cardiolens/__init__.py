"""CardioLens: evaluation of multimodal language models on multi-sequence cardiac MRI.

`read_run` gives the tables, figures and cases of a finished run; it is loaded when it is first asked for.
"""

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

__version__ = "0.1.0"

# `python -m cardiolens.sweep` runs `cardiolens/commands/sweep.py`; a test forbids importing it by that name.
__path__.append(str(Path(__file__).with_name("commands")))

if TYPE_CHECKING:
    from cardiolens.show.notebook.run import read_run as read_run

__all__ = ["__version__", "read_run"]


def __getattr__(name: str) -> object:
    if name == "read_run":
        return importlib.import_module("cardiolens.show.notebook.run").read_run
    raise AttributeError(f"module 'cardiolens' has no attribute {name!r}")
