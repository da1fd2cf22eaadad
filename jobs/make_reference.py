"""A hook of mkdocs: the reference pages that are made of the code when the site is built.

They are no files: options, columns, commands, models, flags of an import, fields of `authors-1`.
"""

import ast
import inspect
import io
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout, suppress
from importlib import import_module
from typing import get_args
from unittest.mock import patch

import pyarrow as pa
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from cardiolens.commands.help import VERBS, remarks
from cardiolens.config.base import Spec
from cardiolens.config.curation_specs import IngestSpec, QuestionsSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.curation.ingest.reasons import Flag, Reason
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.storage import schemas
from cardiolens.study.anatomy import DATA, read_yaml
from jobs.show_catalogue import catalogue, catalogue_table

FROM, TO = "authors-1", "openprotocol-1"  # whose fields are compared
_ROOTS: Mapping[str, type[Spec]] = {
    "sweep": SweepSpec,
    "ingest": IngestSpec,
    "questions": QuestionsSpec,
}
_CONFIGURATION = """# Configuration

Every option, with its type, its default and its meaning. The defaults here are those of the code; a file of
`conf/` may set others, which `python -m cardiolens.sweep --cfg=job` prints.
[Configure](../guides/configure.md) shows how options are set. An unknown option is refused with the nearest
legal names.
"""
_COMMANDS = """# Commands

Each command prints this text with `--help`.
"""
_CATALOGUE = """# Catalogue of models

The entries of `conf/model` that describe a model. [Models](../guides/gpus.md#models) explains the columns.
"""
_AUTHORS_FIELDS = f"""# Fields of {FROM}

The 32 fields of the authors' early public program, as [`{FROM}`](../protocol/authors.md) asks them, and what
`{TO}` asks in their place. S: one answer; M: one or more. *None* stands alone; `{FROM}-gated`
leaves it out, and asks a field where the one of the column "gated by" is answered so.
"""
_SUBTASKS = f"""# Subtasks of {TO}

The 32 subtasks of tier 1 and the questions of tier 3. S: one answer; O: one, in rank order; M: one or more.
(X) marks an option that stands alone. A question with a parent is asked where the true answer of the parent
is one of those given; [tasks](../protocol/tasks.md) says what else it needs. The field names it in reports.
"""
_CHECKLISTS = f"""# Checklists

The five points of the [reasoning prompt](../protocol/prompts.md#73-reasoning-tier-1) by subtask of `{TO}`,
and its other wordings. The wording of both is **[design]**.
"""
_IMPORT = """# Flags and reasons of an import

Flags of a volume (`proposals.json`), and reasons of what is left out or waits (`rejects.jsonl`), each
with what to do. The message of a reason says more of the file. [Import](../guides/import.md) leads
through an import.
"""
_OF_TABLES = """# Tables

Every step reads and writes these fourteen tables and nothing else. A table is a folder of Parquet part files.
`cardiolens.read_run` gives those of a run as Arrow ([Python](python.md)); any reader of Parquet opens them.
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add every page to those of the site."""
    for place, text in pages().items():
        files.append(File.generated(config, place, content=text))
    return files


def pages() -> dict[str, str]:
    """Return the text of every generated page by its place below docs."""
    return {
        "reference/configuration.md": "\n".join([_CONFIGURATION, *_options()]),
        "reference/tables.md": "\n".join([_OF_TABLES, *_columns()]),
        "reference/verbs.md": "\n".join([_COMMANDS, *_commands()]),
        "reference/catalogue.md": "\n".join([_CATALOGUE, *catalogue_table(catalogue()), ""]),
        "reference/import.md": "\n".join([_IMPORT, *_flags_and_reasons(), ""]),
        "reference/authors-fields.md": "\n".join([_AUTHORS_FIELDS, *_fields(), ""]),
        "reference/subtasks.md": "\n".join([_SUBTASKS, *_subtasks(), ""]),
        "reference/checklists.md": "\n".join([_CHECKLISTS, *_checklists(), ""]),
    }


def _commands() -> Iterator[str]:
    """Yield the help of every verb, in groups."""
    for title, verbs in VERBS.items():
        yield f"## {title}\n"
        yield from (f"### {verb}\n\n```text\n{help_of(verb)}\n```\n" for verb in verbs)


def help_of(verb: str) -> str:
    """Return what a verb prints with `--help`."""
    printed = io.StringIO()
    module = import_module(f"cardiolens.commands.{verb}")
    asked = patch.object(sys, "argv", [verb, "--help"])
    with asked, patch.object(sys, "excepthook"), redirect_stdout(printed), suppress(SystemExit):
        module.main()
    return printed.getvalue().strip()


def _flags_and_reasons() -> Iterator[str]:
    """Yield the flags and the reasons of an import."""
    for title, names in (("Flags", Flag), ("Reasons", Reason)):
        yield from (
            f"## {title}\n",
            _row(title.lower().rstrip("s"), "meaning, and what to do"),
            _row("---", "---"),
        )
        yield from (_row(f"`{name}`", name.meaning) for name in names)
        yield ""


_KINDS = {"single": "S", "ordinal": "O", "multi": "M"}


def _subtasks() -> Iterator[str]:
    """Yield the rows of the subtasks with options, in the order of the catalogue."""
    yield _row("id", "field", "question", "type", "options", "views", "parent", "tag")
    yield _row(*["---"] * 8)
    for name, subtask in load_catalogue(TO).subtasks.items():
        if subtask.answer_type not in _KINDS:
            continue
        options = "; ".join(
            f"{option.key} {option.text}{' (X)' if option.key in subtask.exclusive else ''}"
            for option in subtask.options
        )
        views = " ".join(f"{view}:{weight}" for view, weight in subtask.route)
        parent = f"{subtask.parent} = {', '.join(subtask.parent_answers)}" if subtask.parent else ""
        kind = _KINDS[subtask.answer_type]
        first = f"`{name}`", subtask.field, subtask.question, kind
        yield _row(*first, options, views, parent, subtask.provenance)


def _fields() -> Iterator[str]:
    """Yield the rows of the fields, with their options and their counterparts."""
    yield _row("id", "view", "type", "question", "options", "gated by", f"{TO} asks", "what differs", "tag")
    yield _row(*["---"] * 9)
    fields, gated = load_catalogue(FROM), load_catalogue(f"{FROM}-gated")
    for name, pair in read_yaml(DATA / FROM / "bridge.yaml").items():
        field, parent = fields[name], gated[name]
        kind = "M" if field.answer_type == "multi" else "S"
        options = "; ".join(f"{option.key} {option.text}" for option in field.options)
        by = f"{parent.parent} {', '.join(parent.parent_answers)}" if parent.parent else ""
        asks = f"{pair['asks']}: {pair['subtask']}" if "subtask" in pair else pair["asks"]
        view = field.route[0][0]
        yield _row(
            f"`{name}`", f"`{view}`", kind, field.question, options, by, asks, pair["note"], field.provenance
        )


def _checklists() -> Iterator[str]:
    """Yield the points and the other wordings of every subtask that has options."""
    yield _row("id", "points", "other wordings")
    yield _row(*["---"] * 3)
    for name, subtask in load_catalogue(TO).subtasks.items():
        if subtask.checklist:
            yield _row(f"`{name}`", "; ".join(subtask.checklist), " / ".join(subtask.wordings))


def classes() -> dict[type[Spec], str]:
    """Return every configuration class below the roots once, with the path at which it is set."""
    found: dict[type[Spec], str] = {}
    for verb, root in _ROOTS.items():
        _collect(root, verb, "", found)
    return found


def _collect(spec: type[Spec], verb: str, path: str, found: dict[type[Spec], str]) -> None:
    if spec in found:
        return
    found[spec] = f"{verb}: {path}" if path else f"the verb {verb}"
    for name, field in spec.model_fields.items():
        for kind in _kinds(field.annotation):
            _collect(kind, verb, f"{path}.{name}".strip("."), found)


def _kinds(annotation: object) -> Iterator[type[Spec]]:
    if isinstance(annotation, type) and issubclass(annotation, Spec):
        yield annotation
    for inner in get_args(annotation):
        yield from _kinds(inner)


def _options() -> Iterator[str]:
    for spec, place in classes().items():
        said = inspect.cleandoc(spec.__doc__ or "")
        yield f"## {spec.__name__.removesuffix('Spec')}\n\n{said} Set at {place}.\n"
        yield "| option | type | default | meaning |\n|---|---|---|---|"
        meanings = remarks(spec)
        for name, field in spec.model_fields.items():
            cells = (f"`{name}`", f"`{_type(spec, name)}`", _default(field), meanings.get(name, ""))
            yield _row(*cells)
        yield ""


def _type(spec: type[Spec], name: str) -> str:
    """Return the annotation as the source has it, on one line."""
    for base in spec.__mro__:
        if name in getattr(base, "__annotations__", {}):
            (tree,) = ast.parse(inspect.getsource(base)).body
            assert isinstance(tree, ast.ClassDef)
            for node in tree.body:
                if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name:
                    return ast.unparse(node.annotation)
    raise AssertionError(f"{spec.__name__}.{name} has no annotation")


def _default(field: FieldInfo) -> str:
    if field.default is PydanticUndefined:
        return "required" if field.default_factory is None else "made"
    value = field.default
    if isinstance(value, BaseModel):
        return "see below"
    return f"`{list(value) if isinstance(value, tuple) else value}`"


def _columns() -> Iterator[str]:
    every = {name: one for name, one in vars(schemas).items() if isinstance(one, pa.Schema)}
    for schema in every.values():
        table = schema.metadata[b"table"].decode()
        yield f"## {table}\n\n| column | type | meaning |\n|---|---|---|"
        for field in schema:
            meaning = schemas.COLUMNS[table][field.name][1]
            yield _row(f"`{field.name}`", f"`{field.type}`", meaning)
        yield ""


def _row(*cells: str) -> str:
    return "| " + " | ".join(re.sub(r"\s+", " ", cell).replace("|", r"\|") for cell in cells) + " |"
