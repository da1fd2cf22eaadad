"""Option names of the installed vLLM, read from its source code without importing vLLM."""

import ast
import difflib
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from cardiolens.base.errors import InputError
from cardiolens.config.engine_options import SET_HERE
from cardiolens.config.sweep import SweepSpec

_CLASSES = ("EngineArgs", "AsyncEngineArgs")
_NEAREST = 3


def check_engine_options(spec: SweepSpec) -> None:
    """Raise InputError, before anything starts, for an engine option that the installed vLLM lacks.

    Without an installed vLLM no option is checked; models that need vLLM are refused elsewhere.
    """
    for model in spec.model:
        legal_options = known_options() if model.engine_options else frozenset()
        for name in sorted(model.engine_options.keys() - legal_options) if legal_options else ():
            nearest = difflib.get_close_matches(name, legal_options - SET_HERE.keys(), n=_NEAREST, cutoff=0.5)
            legal = f"the nearest are {', '.join(nearest)}" if nearest else "see its AsyncEngineArgs"
            raise InputError(
                f"model {model.name}: engine_options.{name}: vLLM has no such option; {legal}; correct or "
                "remove it"
            )


@cache
def known_options() -> frozenset[str]:
    """Return the fields of vLLM's AsyncEngineArgs; empty if vLLM is not installed."""
    package = find_spec("vllm")
    if package is None or package.origin is None:
        return frozenset()
    source = Path(package.origin).parent / "engine" / "arg_utils.py"
    classes = [node for node in ast.parse(source.read_text()).body if isinstance(node, ast.ClassDef)]
    names = {
        field.target.id
        for node in classes
        if node.name in _CLASSES
        for field in node.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
    }
    return frozenset(name for name in names if not name.startswith("_"))
