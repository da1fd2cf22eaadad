"""Prompt templates: Jinja files, a user's own before the packaged ones, checked before anything runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Literal, get_args

import jinja2
from jinja2 import meta

from cardiolens.errors import InputError
from cardiolens.prompts.frames import FRAME
from cardiolens.prompts.question import Kind

Style = Literal["standard", "reasoning"]

_SYSTEM = "system"
_NEEDED: Mapping[str, frozenset[str]] = {
    _SYSTEM: frozenset(),
    "question": frozenset({"question", "options"}),
    "diagnosis": frozenset({"question", "options"}),
    "report": frozenset({"question", "schema"}),
}
_TRIAL: Mapping[str, object] = {
    "n": 2,
    "subtask": "X01",
    "sequence": "cine",
    "question": "What is shown?",
    "rule": "Pick exactly one option.",
    "options": [{"letter": "A", "text": "Normal"}, {"letter": "B", "text": "Abnormal"}],
    "checklist": ["look", "compare", "confirm", "exclude", "decide"],
    "schema": "{}",
}
_JINJA = jinja2.Environment(
    undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
)


@dataclass(frozen=True, slots=True)
class Template:
    """A checked template, known by its id and its content."""

    name: str  # id@first eight hex digits of the file's SHA-256
    compiled: jinja2.Template = field(compare=False, repr=False)

    def render(self, variables: Mapping[str, object]) -> str:
        return self.compiled.render(variables).strip()


def system_template(folder: Path | None = None, *, frames: bool = True) -> Template:
    """The system message; the question-only control, which shows no frames, has its own."""
    return _load(_id(_SYSTEM, frames), _SYSTEM, folder)


def question_template(
    kind: Kind, style: Style, folder: Path | None = None, *, frames: bool = True
) -> Template:
    """What follows the frames of a kind of question; the question-only control has its own."""
    return _load(_id(f"{kind}_{style}", frames), kind, folder)


def check_folder(folder: Path) -> None:
    """Load every template of a user's folder; InputError for one that is wrong or would never be found."""
    legal = {_id(f"{kind}_{style}", shown): kind for kind, style, shown in _combinations()}
    legal |= {_id(_SYSTEM, shown): _SYSTEM for shown in (True, False)}
    found = sorted(folder.glob("*.jinja"))
    if not found:
        raise InputError(
            f"{folder}: holds no template; a template is called one of {sorted(legal)}, with .jinja"
        )
    for path in found:
        if path.stem not in legal:
            raise InputError(f"{path}: no prompt uses this name; a template is called one of {sorted(legal)}")
        _load(path.stem, legal[path.stem], folder)


def _combinations() -> list[tuple[str, str, bool]]:
    return [(k, style, shown) for k in get_args(Kind) for style in get_args(Style) for shown in (True, False)]


def _id(name: str, frames: bool) -> str:
    return name if frames else f"question_only_{name}"


@cache
def _load(template_id: str, kind: str, folder: Path | None) -> Template:
    """`<template_id>.jinja` of the folder if it is there, else the packaged one."""
    own = None if folder is None else folder / f"{template_id}.jinja"
    if own is not None and own.is_file():
        return _compiled(template_id, _text(own), kind, str(own))
    packaged = files("cardiolens.prompts").joinpath("templates", f"{template_id}.jinja")
    return _compiled(template_id, packaged.read_text(encoding="utf-8"), kind, str(packaged))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as UTF-8 text ({error})") from None


def _compiled(template_id: str, text: str, kind: str, where: str) -> Template:
    given = _TRIAL if kind != _SYSTEM else {}
    try:
        used = meta.find_undeclared_variables(_JINJA.parse(text))
        _check(used, set(given), _NEEDED[kind], where)
        template = Template(
            f"{template_id}@{sha256(text.encode()).hexdigest()[:8]}", _JINJA.from_string(text)
        )
        rendered = template.render(given)
    except jinja2.TemplateError as error:
        raise InputError(f"{where}: cannot be rendered as a Jinja template ({error})") from None
    if FRAME in rendered:
        raise InputError(f"{where}: holds U+FFFC, which is kept for the places of frames; remove it")
    return template


def _check(used: set[str], given: set[str], needed: frozenset[str], where: str) -> None:
    if unknown := sorted(used - given):
        raise InputError(f"{where}: uses {unknown}, which it is not given; it may use {sorted(given)}")
    if missing := sorted(needed - used):
        raise InputError(f"{where}: never uses {missing}; write e.g. {{{{ {missing[0]} }}}} where it belongs")
