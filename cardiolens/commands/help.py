"""Help of the verbs, made of their docstrings and typed options."""

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import takewhile
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from rich.table import Table

from cardiolens.base.console import console
from cardiolens.base.errors import InputError
from cardiolens.base.phrasing import choices
from cardiolens.base.running_version import running_version
from cardiolens.base.sanitize import one_line
from cardiolens.config.base import Spec
from cardiolens.config.conf_names import GROUPS, legal_names
from cardiolens.config.sweep import SweepSpec

HELP, VERSION = ("-h", "--help"), "--version"
VERBS: Mapping[str, Sequence[str]] = {  # in the order in which a user meets them
    "From scans and reports to questions": ("ingest", "confirm", "questions", "review", "release"),
    "From questions to replies": ("doctor", "prepare", "sweep", "submit", "status"),
    "From replies to results": ("judge", "report", "view", "compare", "export"),
    "Upkeep": ("store", "head"),
}
Options = Mapping[str, type[Spec]]  # by action; "" where no action is named


def known_verb(name: str) -> str:
    """Return the name if a module of this package has it, else raise InputError."""
    verbs = [verb for group in VERBS.values() for verb in group]
    if not name.isidentifier() or not files(__package__).joinpath(f"{name}.py").is_file():
        raise InputError(f"{one_line(name, 60)}: no such verb; {choices(name, verbs, 'cardiolens --help')}")
    return name


def print_overview() -> None:
    """Print the verbs in groups, with a line each."""
    print("python -m cardiolens.<verb> [name=value ...], or cardiolens <verb> [name=value ...]\n")
    for title, verbs in VERBS.items():
        _print(title, [(verb, _does(verb)) for verb in verbs])
    print("Each verb explains its options: cardiolens sweep --help")
    print("To begin: python -m cardiolens.sweep +experiment=demo")


def _does(verb: str) -> str:
    """The first sentence of a verb's docstring, after its command."""
    source = files(__package__).joinpath(f"{verb}.py").read_text("utf-8")
    doc = ast.get_docstring(ast.parse(source)) or ""
    return " ".join(doc.partition("\n\n")[0].split()).partition("`: ")[2].rstrip(".")


def version() -> str:
    """Return the line of `--version`."""
    return f"cardiolens {running_version()}"


def end_if_asked(doc: str, options: Options, words: Sequence[str]) -> None:
    """Print help or the version and end the process, if a word asks for it."""
    if VERSION in words:
        print(version())
    elif not {*HELP}.isdisjoint(words):
        print_help(doc, options)
    else:
        return
    raise SystemExit(0)


def print_help(doc: str, options: Options) -> None:
    """Print what a verb does, and the options of each of its actions."""
    for paragraph in inspect.cleandoc(doc).replace("`", "").split("\n\n"):
        print(textwrap.fill(paragraph, console.width, break_long_words=False, break_on_hyphens=False) + "\n")
    for action, spec in options.items():
        _print(f"Options of {action}" if action else "Options", list(options_of(spec)))
        if spec is SweepSpec:
            names = [(group, ", ".join(legal_names(group))) for group in GROUPS]
            _print("Names, from the files of conf/ and of your own conf/", names)
            print("The whole configuration: add --cfg=job. What would be done: mode=plan")


def _print(title: str, rows: Sequence[tuple[str, ...]]) -> None:
    table = Table.grid(padding=(0, 2))
    for row in rows:
        table.add_row("", *row)
    print(f"{title}:")
    console.print(table)
    print()


def options_of(spec: type[BaseModel], within: str = "") -> Iterator[tuple[str, ...]]:
    """Yield name, default and meaning of each option; those of a part stand as `part.option`."""
    meanings = remarks(spec)
    for name, field in spec.model_fields.items():
        part = None if within else _part(field.annotation)
        if part is not None:
            yield from options_of(part, f"{name}.")
        else:
            yield f"{within}{field.alias or name}", _default(field), meanings.get(name, "")


def _part(annotation: Any) -> type[BaseModel] | None:
    """The class of options that an annotation names alone, not in a list."""
    kinds = (annotation, *get_args(annotation))
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)


def _default(field: FieldInfo) -> str:
    if field.default is PydanticUndefined:
        return "required" if field.default_factory is None else ""
    value = field.default
    if value is None or isinstance(value, BaseModel):
        return ""
    return f"[{','.join(map(str, value))}]" if isinstance(value, tuple) else str(value)


def remarks(spec: type[BaseModel]) -> dict[str, str]:
    """Return the comment after, or before, each field of a class and of its bases."""
    found: dict[str, str] = {}
    for base in reversed(spec.__mro__):
        if issubclass(base, BaseModel) and base is not BaseModel:
            found |= _remarks_of(textwrap.dedent(inspect.getsource(base)))
    return found


def _remarks_of(source: str) -> dict[str, str]:
    lines = source.splitlines()
    (tree,) = ast.parse(source).body
    found = {}
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            own, before = lines[node.lineno - 1 : node.end_lineno], lines[node.lineno - 2 :: -1]
            within = [line.partition("  # ")[2] for line in own if "  # " in line]
            above = [*takewhile(lambda line: line[:1] == "#", map(str.strip, before))]
            found[node.target.id] = " ".join(within or [line[1:].strip() for line in reversed(above)])
    return found
