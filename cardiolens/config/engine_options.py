"""vLLM options in a model's file: which ones CardioLens sets itself, and which ones change answers."""

from collections.abc import Mapping
from importlib.resources import files

import yaml
from pydantic import JsonValue

_LISTS: Mapping[str, Mapping[str, str]] = yaml.safe_load(
    files("cardiolens.config").joinpath("engine_options.yaml").read_text(encoding="utf-8")
)
SET_HERE = {name: instead for instead, names in _LISTS["set_here"].items() for name in names.split()}
"""vLLM options that CardioLens sets itself, and the setting to use instead."""

SAME_ANSWERS = frozenset(name for names in _LISTS["same_answers"].values() for name in names.split())
"""Options that change how an engine works, not its answers; every other option counts as changing answers."""


def check_options(options: Mapping[str, JsonValue]) -> None:
    """Raise ValueError for an option that CardioLens sets itself; options unknown to vLLM pass here."""
    for name in options:
        if name in SET_HERE:
            raise ValueError(f"{name} is set by CardioLens; use {SET_HERE[name]}")
    share = options.get("gpu_memory_utilization", 1)
    if not isinstance(share, int | float) or not 0 < share <= 1:
        raise ValueError(f"gpu_memory_utilization is {share!r}; expected a share above 0, at most 1")


def changing_answers(options: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the options that belong to a model's identity."""
    return {name: value for name, value in options.items() if name not in SAME_ANSWERS}
