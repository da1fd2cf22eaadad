"""The verdict on a step of a reasoning, in our form and in that of MedThinkVQA's makers (protocol 16.17)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from cardiolens.base.errors import InputError

ERRORS = ("Reasoning", "Image Understanding", "Clinical Scenario", "Medical Knowledge")
PUBLISHED_ERRORS = tuple(f"{name} Err" for name in ERRORS)

Form = Literal["own", "published"]
"""own: `error_types` is a list of ERRORS. published: of PUBLISHED_ERRORS, or null; with an explanation."""

_FILLED_IN = (  # explanations with which their judge marks steps that got no verdict, as not factual
    "No valid structured verdict was returned.",
    "Missing verdict; treated as unsupported.",
)
_FLAGS = ("is_factual", "is_critical")
_KEYS: Mapping[Form, tuple[str, ...]] = {
    "own": (*_FLAGS, "error_types"),
    "published": (*_FLAGS, "explanation", "error_types"),
}
_NAMES: Mapping[Form, tuple[str, ...]] = {"own": ERRORS, "published": PUBLISHED_ERRORS}


@dataclass(frozen=True, slots=True)
class StepVerdict:
    """The verdict of the judge or of a person on one step."""

    is_factual: bool
    is_critical: bool
    error_types: tuple[str, ...] | None  # of ERRORS; None: not factual, and what is wrong was not said


def form_of(entry: object) -> Form:
    """Return the form that a verdict is written in."""
    if not isinstance(entry, Mapping):
        return "own"
    types = entry.get("error_types")
    named = types if isinstance(types, list) else []
    is_published = types is None or "explanation" in entry or any(name in PUBLISHED_ERRORS for name in named)
    return "published" if is_published else "own"


def step_verdict(entry: object, form: Form) -> StepVerdict:
    """Parse a verdict; InputError names the field, its value, and what is legal.

    In the published form, `explanation` and `error_types` may be missing. As in their code, the types of a
    step that is factual do not count.
    """
    if not isinstance(entry, Mapping):
        raise _wrong("the verdict", entry, f"an object with {', '.join(_KEYS[form])}")
    if unknown := sorted(entry.keys() - set(_KEYS[form])):
        raise InputError(f"{unknown[0]} is unknown; legal are {', '.join(_KEYS[form])}")
    for name in _FLAGS:
        if not isinstance(entry.get(name), bool):
            raise _wrong(name, entry.get(name), "true or false")
    if not isinstance(entry.get("explanation", ""), str):
        raise _wrong("explanation", entry["explanation"], "text")
    types = _error_types(entry.get("error_types"), form)
    if form == "published":
        types = () if entry["is_factual"] else types or None
    return StepVerdict(entry["is_factual"], entry["is_critical"], types)


def is_filled_in(entry: Mapping[str, Any]) -> bool:
    """Return whether an entry of a published file stands for a verdict that their judge did not give."""
    return entry.get("is_factual") is False and entry.get("explanation") in _FILLED_IN


def _error_types(value: object, form: Form) -> tuple[str, ...] | None:
    if value is None and form == "published":
        return None
    legal = f"a list of {', '.join(_NAMES[form])}{', or null' if form == 'published' else ''}"
    if not isinstance(value, list):
        raise _wrong("error_types", value, legal)
    for name in value:
        if name not in _NAMES[form]:
            raise _wrong("error_types", name, legal)
    return tuple(own for own, name in zip(ERRORS, _NAMES[form], strict=True) if name in value)


def _wrong(name: str, value: object, expected: str) -> InputError:
    text = "missing" if value is None else json.dumps(value, ensure_ascii=False)[:60]
    return InputError(f"{name} is {text}; expected {expected}")
