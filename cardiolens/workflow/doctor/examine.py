"""Examine this machine for a sweep: a line for each thing that the sweep will need."""

import sys
from itertools import chain
from typing import Final

from cardiolens.base.console import say
from cardiolens.base.errors import InputError
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.models.identity import installed_engine
from cardiolens.workflow.doctor.check import Check
from cardiolens.workflow.doctor.machine_checks import cuda_of_torch, machine_checks
from cardiolens.workflow.doctor.part_checks import part_checks

_MARKS: Final = {"ok": "ok  ", "note": "note", "fix": "FIX "}


def examine(spec: SweepSpec) -> int:
    """Print a line for each check; 0 unless one of them says that the sweep would fail."""
    n_fix = 0
    engine, cuda = _engine(spec)
    for check in chain((engine,), machine_checks(spec, cuda), part_checks(spec)):
        say(f"{_MARKS[check.state]} {check.subject}: {check.text}")
        n_fix += check.state == "fix"
    say(f"{n_fix} to fix before a sweep" if n_fix else "nothing to fix")
    return 1 if n_fix else 0


def _engine(spec: SweepSpec) -> tuple[Check, str | None]:
    """The installed engine, and the CUDA version it was built for; none is needed for other models."""
    python = f"Python {sys.version.partition(' ')[0]}"
    if not any(model.engine == "vllm" for model in spec.model):
        return Check("engine", "ok", f"{python}; no model of this sweep needs vLLM"), None
    try:
        flavour, number = installed_engine()
    except InputError as error:
        return Check("engine", "fix", str(error)), None
    if flavour != "cuda":
        return Check("engine", "ok", f"{python}, vLLM {number} for {flavour}"), None
    cuda = cuda_of_torch()
    if cuda is None:
        text = f"vLLM {number} is for CUDA, and torch is not; make the environment again"
        return Check("engine", "fix", f"{text}: requirements/setup.sh gpu"), None
    return Check("engine", "ok", f"{python}, vLLM {number} for CUDA {cuda}"), cuda
