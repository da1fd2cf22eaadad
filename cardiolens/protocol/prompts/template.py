"""Prompt templates: found, checked, rendered to system and user messages."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Literal

import jinja2
from jinja2 import meta, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from cardiolens.base.errors import InputError
from cardiolens.base.paths import PACKAGE
from cardiolens.base.untrusted.bounded_files import is_housekeeping, read_text
from cardiolens.protocol.prompts.frames import CaptionLevel, frame_block
from cardiolens.protocol.prompts.question import AskedQuestion, words
from cardiolens.protocol.select.selection import Frame
from cardiolens.protocol.tasks.legal import reserved_in
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

_PACKAGED = (
    PACKAGE / "protocol" / "prompts" / "templates"
)  # one for each prompt: their names are the legal ones
_SYSTEM = "system"
_OWN_SYSTEM = ("case", "picture")  # kinds of questions with a system message of their own
_MOST_BYTES = 64 << 10  # of a template
_PREFIX: Mapping[Display, str] = {"frames": "", "captions": "captions_", "nothing": "question_only_"}
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
    folders = _FOLDERS_OF(question.protocol) if folders is None else folders
    system = f"{question.kind}_{_SYSTEM}" if question.kind in _OWN_SYSTEM else _SYSTEM
    prefix, study = _PREFIX[display], question.anatomy.words
    return _template(f"{prefix}{question.kind}_{style}", f"{prefix}{system}", folders, study)


def check_folder(folder: Path) -> None:
    """Load every template of a user's folder; InputError for one that is invalid or that no prompt uses."""
    legal = sorted(path.stem for path in _PACKAGED.glob("*.jinja"))
    template_files = sorted(path for path in folder.glob("*.jinja") if not is_housekeeping(path.name))
    if not template_files:
        raise InputError(f"{folder}: holds no template; a template is called one of {legal}, with .jinja")
    for path in template_files:
        if path.stem not in legal:
            raise InputError(f"{path}: no prompt uses this name; a template is called one of {legal}")
        _checked(path.stem, (folder,))


@cache
def _template(template_id: str, system_id: str, folders: Sequence[Path], study: str) -> Template:
    system, _ = _checked(system_id, folders)
    compiled, digest = _checked(template_id, folders)
    with _jinja(system_id):
        return Template(f"{template_id}@{digest[:8]}", system.render(study=study).strip(), compiled)


def _checked(template_id: str, folders: Sequence[Path]) -> tuple[jinja2.Template, str]:
    """Return a compiled template and its file's SHA-256; InputError if it cannot be used."""
    paths = (folder / f"{template_id}.jinja" for folder in (*folders, _PACKAGED))
    path = next(path for path in paths if path.exists())
    try:
        text = read_text(path, _MOST_BYTES)
    except (OSError, UnicodeError) as error:
        raise InputError(f"{path}: cannot be read as UTF-8 text ({error})") from None
    is_system = template_id.endswith(_SYSTEM)
    values = _TRIAL_SYSTEM if is_system else _TRIAL
    with _jinja(str(path)):
        parsed = _JINJA.parse(text)
        for refused in _refused(parsed):  # first: the analysis below already evaluates constant expressions
            raise InputError(
                f"{path}: uses {refused}, which prompts do not need; use variables, if, for over the "
                f"variables ({_NESTED_LOOPS} loops deep), + - ~, comparisons, and the filters "
                f"{', '.join(sorted(_FILTERS))}"
            )
        used = meta.find_undeclared_variables(parsed)
    if unknown := sorted(used - set(values)):
        raise InputError(f"{path}: uses {unknown}, which it is not given; it may use {sorted(values)}")
    needed = {"question", "schema" if "report_" in template_id else "options"} - used
    if needed and not is_system:
        missing = sorted(needed)
        raise InputError(f"{path}: never uses {missing}; write e.g. {{{{ {missing[0]} }}}} where it belongs")
    with _jinja(str(path)):
        compiled = _JINJA.from_string(text)
        rendered = compiled.render(values).strip()
    if problem := reserved_in(rendered):
        raise InputError(f"{path}: {problem}")
    return compiled, sha256(text.encode()).hexdigest()


_FAULTS = (jinja2.TemplateError, TypeError, ValueError, ArithmeticError, LookupError, RecursionError)


@contextmanager
def _jinja(where: str) -> Iterator[None]:
    """Convert exceptions of template code to InputError."""
    try:
        yield
    except InputError:
        raise
    except _FAULTS as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"{where}: cannot be rendered as a Jinja template ({reason}); correct the template"
        ) from None


Closing = Literal["letters", "json"]
_ENDINGS = {"multi": "several", "number": "number", "ranking": "ranking"}  # by answer type; others: one


def render(
    frames: Sequence[Frame],
    structure: StudyStructure,
    question: AskedQuestion,
    template: Template,
    level: CaptionLevel,
    *,
    closing: Closing = "letters",
) -> str:
    """Render the user message: frames and captions first, each frame's place marked by U+FFFC."""
    return frame_block(frames, structure, level) + question_block(question, len(frames), template, closing)


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
            "closing": words()["closings"][closing][_ENDINGS.get(question.answer_type, "one")],
            "checklist": question.checklist,
            "schema": question.schema,
        }
    )
