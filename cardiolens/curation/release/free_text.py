"""The free text of a release: what people wrote of all that strangers will read, with where it stands."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_text
from cardiolens.curation.release.kept_record import kept_manifest, kept_question
from cardiolens.curation.release.release_words import Release
from cardiolens.protocol.tasks.catalogue import Catalogue
from cardiolens.protocol.tasks.questions import GivenQuestion
from cardiolens.study.manifest import MANIFEST_NAME, Study

_MOST_BYTES = 16 << 20  # of a file of a protocol
# Entries of questions and of study.json whose values are checked against a list, or written anew.
_CHECKED_ENTRIES = """
schema qa_id study_id patient_id study subtask sequence tier answer_type answer origin protocol key
volume_id view path sha256 sex order spatial_order layout_source confirmed status verdict agreement
"""
_CHECKED = frozenset(_CHECKED_ENTRIES.split())


@dataclass(frozen=True, slots=True)
class Passage:
    """A text and its place in the files that a release is made from; `ours` if CardioLens comes with it."""

    file: str
    place: str
    text: str
    ours: bool = False


def passages(
    spec: Release, catalogue: Catalogue, questions: Iterable[GivenQuestion], studies: Mapping[str, Study]
) -> Iterator[Passage]:
    """Yield the command's words, questions, kept values of study.json, and the files of an own protocol.

    InputError for what cannot be read as text, and for a verification with values of another form.
    """
    own = Path(spec.protocol).is_dir()
    shipped = frozenset() if own else _texts(catalogue)
    for word in ("name", "number", "licence"):
        yield Passage("the command", f"{word}=", str(getattr(spec, word)))
    yield from (Passage("the command", "cohorts=", name) for name in spec.cohorts)
    for row in questions:
        for place, text in _leaves(kept_question(row, spec.questions.name), ""):
            yield Passage(spec.questions.name, f"line {row.number}, {place}", text, text in shipped)
    for study in studies.values():
        for place, text in _leaves(kept_manifest(study), ""):
            yield Passage(f"{study.folder.name}/{MANIFEST_NAME}", place, text)
    if own:
        yield from _protocol_files(Path(spec.protocol))


def _protocol_files(folder: Path) -> Iterator[Passage]:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_dir() and not path.is_symlink():  # a link to a folder is copied with everything in it
            continue
        try:
            text = read_text(path, _MOST_BYTES)
        except (OSError, ValueError):
            raise InputError(
                f"protocol={folder}: {name} is no text that can be read, so nobody can say whom it names; a "
                "release copies the whole folder; take the file out of it"
            ) from None
        yield Passage("protocol", "names of files", name)
        yield Passage(f"protocol/{name}", "text", text)


def _texts(catalogue: Catalogue) -> frozenset[str]:
    """Return the texts of the shipped catalogue that questions hold."""
    subtasks = catalogue.subtasks.values()
    return frozenset(
        text
        for subtask in subtasks
        for text in (subtask.question, *subtask.wordings, *(option.text for option in subtask.options))
    )


def _leaves(tree: Any, place: str) -> Iterator[tuple[str, str]]:
    """Yield names of entries and values as text; of a broken number the whole part, which measures lack."""
    if isinstance(tree, Mapping):
        for name, value in tree.items():
            if name not in _CHECKED:
                yield from _leaves(value, f"{place}.{name}".lstrip("."))
    elif isinstance(tree, list):
        for number, value in enumerate(tree):
            yield from _leaves(value, f"{place}[{number}]")
    elif isinstance(tree, float):
        yield place, str(int(tree))
    elif tree is not None and not isinstance(tree, bool):
        yield place, str(tree)
