"""Prompt templates: found, checked, rendered to system and user messages."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from hashlib import sha256
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Literal, get_args

import jinja2
from jinja2 import meta, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import is_housekeeping, read_text
from cardiolens.protocol.prompts.frames import CaptionLevel, frame_block
from cardiolens.protocol.prompts.question import AskedQuestion, QuestionKind, words
from cardiolens.protocol.select.selection import Frame
from cardiolens.storage.schemas import FRAME
from cardiolens.study.anatomy import DATA, HEART, anatomy_of, lineage
from cardiolens.study.structure import StudyStructure

# A protocol's templates may be a stranger's: they are data, with these parts of Jinja alone.
_LEGAL = frozenset(
    (
        *("Template", "Output", "TemplateData", "Name", "Const", "List", "Tuple", "Getattr", "Getitem"),
        *("Slice", "If", "For", "CondExpr", "Compare", "Operand", "And", "Or", "Not", "Add", "Sub", "Neg"),
        *("Concat", "Filter", "Test"),
    )
)
_FILTERS = frozenset(("capitalize", "count", "first", "last", "length", "lower", "title", "trim", "upper"))
_NESTED_LOOPS = 2


def _refused(node: nodes.Node, loops: int = 0) -> Iterator[str]:
    """Yield what a template uses beyond these parts, in Jinja's terms."""
    kind = type(node).__name__
    loops += kind == "For"
    if kind not in _LEGAL:
        yield f"{kind.lower()!r}"
    if loops > _NESTED_LOOPS or getattr(node, "recursive", False):
        yield f"a recursive loop, or {loops} nested loops"
    if isinstance(node, nodes.Filter) and node.name not in _FILTERS:
        yield f"the filter {node.name!r}"
    for child in node.iter_child_nodes():
        yield from _refused(child, loops)


Style = Literal["standard", "reasoning"]
Display = Literal["frames", "captions", "nothing"]
"""What a prompt shows of the frames; controls that show less have their own templates."""

_SYSTEM = "system"
_OWN_SYSTEM = {"case": "case_system", "picture": "picture_system"}  # by kind of question
_MOST_BYTES = 64 << 10  # of a template
_PREFIX: Mapping[Display, str] = {"frames": "", "captions": "captions_", "nothing": "question_only_"}
_NEVER = "captions_picture"  # pictures of public benchmarks have no captions
_NEEDED: Mapping[str, frozenset[str]] = {
    _SYSTEM: frozenset(),
    **dict.fromkeys(("question", "diagnosis", "case", "picture"), frozenset({"question", "options"})),
    "report": frozenset({"question", "schema"}),
}
_TRIAL: Mapping[str, object] = {
    "n": 2,
    "subtask": "X01",
    "sequence": "cine",
    "question": "What is shown?",
    "rule": "Pick exactly one option.",
    "options": [{"letter": "A", "text": "Normal"}, {"letter": "B", "text": "Abnormal"}],
    "closing": "Finish with one line: ANSWER: <letter>",
    "checklist": ["look", "compare", "confirm", "exclude", "decide"],
    "schema": "{}",
}
_TRIAL_SYSTEM: Mapping[str, object] = {"study": "cardiac MRI"}
_JINJA = ImmutableSandboxedEnvironment(
    undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
)


@dataclass(frozen=True, slots=True)
class Template:
    """A checked template, identified by id and content, with its system message."""

    name: str  # id@first eight hex digits of the file's SHA-256
    system: str
    compiled: jinja2.Template = field(compare=False, repr=False)

    def render(self, variables: Mapping[str, object]) -> str:
        """Render the text after the frames."""
        with _jinja(self.name):
            return self.compiled.render(variables).strip()


def template_folders(templates: Path | None, protocol: str) -> tuple[Path, ...]:
    """Return the folders in which the templates of a sweep are looked for, before the packaged ones.

    A protocol that asks about the heart has those of the heart behind its own.
    """
    protocols = [*lineage(protocol), *([DATA / HEART] if anatomy_of(protocol).is_heart else [])]
    of_protocols = [folder / "templates" for folder in dict.fromkeys(protocols)]
    return (
        *([] if templates is None else [templates]),
        *(folder for folder in of_protocols if folder.is_dir()),
    )


_FOLDERS_OF = cache(partial(template_folders, None))


def template_for(
    question: AskedQuestion,
    style: Style,
    folders: tuple[Path, ...] | None = None,
    *,
    display: Display = "frames",
) -> Template:
    """Load the template of a question from the first folder that has it, else from the package.

    The folders are by default those of its protocol.

    Files: `<kind>_<style>.jinja` and `system.jinja`, prefixed `question_only_` or `captions_` for controls
    that show no frames, or captions only. InputError if a file cannot be used.
    """
    name = _id(f"{question.kind}_{style}", display)
    folders = _FOLDERS_OF(question.protocol) if folders is None else folders
    return _template(name, question.kind, display, folders, question.anatomy.words)


def check_folder(folder: Path) -> None:
    """Load every template of a user's folder; InputError for one that is invalid or that no prompt uses."""
    kinds = product(get_args(QuestionKind), get_args(Style), _PREFIX)
    legal = {_id(f"{kind}_{style}", display): (kind, display) for kind, style, display in kinds}
    systems = product((_SYSTEM, *_OWN_SYSTEM.values()), _PREFIX)
    legal |= {_id(name, display): (_SYSTEM, display) for name, display in systems}
    legal = {name: use for name, use in legal.items() if not name.startswith(_NEVER)}
    template_files = sorted(path for path in folder.glob("*.jinja") if not is_housekeeping(path.name))
    if not template_files:
        raise InputError(
            f"{folder}: holds no template; a template is called one of {sorted(legal)}, with .jinja"
        )
    for path in template_files:
        if path.stem not in legal:
            raise InputError(f"{path}: no prompt uses this name; a template is called one of {sorted(legal)}")
        kind, display = legal[path.stem]
        _template(path.stem, kind, display, (folder,), "a study")


def _id(name: str, display: Display) -> str:
    return f"{_PREFIX[display]}{name}"


@cache
def _template(template_id: str, kind: str, display: Display, folders: Sequence[Path], study: str) -> Template:
    endings = (name for name in _OWN_SYSTEM.values() if template_id.endswith(name))
    of_kind = _OWN_SYSTEM.get(kind) or next(endings, _SYSTEM)
    system, _ = _checked(_id(of_kind, display), _SYSTEM, folders)
    compiled, digest = _checked(template_id, kind, folders)
    return Template(f"{template_id}@{digest[:8]}", system.render(study=study).strip(), compiled)


def _checked(template_id: str, kind: str, folders: Sequence[Path]) -> tuple[jinja2.Template, str]:
    """Return a compiled template and its file's SHA-256."""
    for own_file in (folder / f"{template_id}.jinja" for folder in folders):
        if own_file.exists():
            return _compiled(_text(own_file), kind, str(own_file))
    packaged = files("cardiolens.protocol.prompts").joinpath("templates", f"{template_id}.jinja")
    return _compiled(packaged.read_text(encoding="utf-8"), kind, str(packaged))


def _text(path: Path) -> str:
    try:
        return read_text(path, _MOST_BYTES)
    except (OSError, UnicodeError) as error:
        raise InputError(f"{path}: cannot be read as UTF-8 text ({error})") from None


def _compiled(text: str, kind: str, where: str) -> tuple[jinja2.Template, str]:
    values = _TRIAL if kind != _SYSTEM else _TRIAL_SYSTEM
    with _jinja(where):
        parsed = _JINJA.parse(text)
        for refused in _refused(parsed):  # first: the analysis below already evaluates constant expressions
            raise InputError(
                f"{where}: uses {refused}, which prompts do not need; use variables, if, for over the "
                f"variables ({_NESTED_LOOPS} loops deep), + - ~, comparisons, and the filters "
                f"{', '.join(sorted(_FILTERS))}"
            )
        used = meta.find_undeclared_variables(parsed)
    _check(used, set(values), _NEEDED[kind], where)
    with _jinja(where):
        compiled = _JINJA.from_string(text)
        rendered = compiled.render(values).strip()
    if FRAME in rendered:
        raise InputError(f"{where}: holds U+FFFC, which is reserved for frames; remove it")
    return compiled, sha256(text.encode()).hexdigest()


@contextmanager
def _jinja(where: str) -> Iterator[None]:
    """Convert exceptions of template code to InputError."""
    try:
        yield
    except InputError:
        raise
    except (
        jinja2.TemplateError,
        TypeError,
        ValueError,
        ArithmeticError,
        LookupError,
        RecursionError,
    ) as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"{where}: cannot be rendered as a Jinja template ({reason}); correct the template"
        ) from None


def _check(used: set[str], variables: set[str], needed: frozenset[str], where: str) -> None:
    if unknown := sorted(used - variables):
        raise InputError(f"{where}: uses {unknown}, which it is not given; it may use {sorted(variables)}")
    if missing := sorted(needed - used):
        raise InputError(f"{where}: never uses {missing}; write e.g. {{{{ {missing[0]} }}}} where it belongs")


Closing = Literal["letters", "json"]
_ENDINGS = {"multi": "several", "number": "number", "ranking": "ranking"}  # by answer type; others: one


@dataclass(frozen=True, slots=True)
class Prompt:
    """System and user message; U+FFFC marks the place of a frame."""

    system: str
    text: str
    template: str


def render(
    frames: Sequence[Frame],
    structure: StudyStructure,
    question: AskedQuestion,
    template: Template,
    level: CaptionLevel,
    *,
    closing: Closing = "letters",
) -> Prompt:
    """Render frames and captions first, then the text that depends on their number or on the question."""
    text = frame_block(frames, structure, level) + question_block(question, len(frames), template, closing)
    return Prompt(template.system, text, template.name)


@lru_cache(maxsize=8192)
def question_block(
    question: AskedQuestion, n_frames: int, template: Template, closing: Closing = "letters"
) -> str:
    """Render the text after the frames; `closing` names the required form of the answer."""
    return template.render(
        {
            "n": n_frames,
            "subtask": question.subtask,
            "sequence": question.sequence_name,
            "question": question.question,
            "rule": question.rule,
            "options": [{"letter": letter, "text": text} for letter, text in question.displayed],
            "closing": words().closings[closing][_ENDINGS.get(question.answer_type, "one")],
            "checklist": question.checklist,
            "schema": question.schema,
        }
    )
