"""What of a release may name somebody: a person reads a report and confirms it before anything is written.

The report is a file beside the release, for its owner alone. The confirmation is a digest of all findings, so
one more finding asks again. Old ids of studies, patients and reports are refused in any case.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cardiolens.base import disk
from cardiolens.base.digest import digest_of
from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_text
from cardiolens.curation.release.identities import fold, identities
from cardiolens.curation.release.kept_record import kept_manifest, kept_question
from cardiolens.curation.release.release_words import Release
from cardiolens.protocol.tasks.catalogue import Catalogue
from cardiolens.protocol.tasks.questions import GivenQuestion
from cardiolens.study.manifest import MANIFEST_NAME, Study

OLD_ID, SHORT_ID = "old id", "old id, but short"
_SHORTEST = 4  # letters and digits of an id that no text holds by chance; a shorter one may be a word
_RUN = re.compile(r"[^\W\d_]+|\d+")  # letters or digits
_WIDEST_GAP = 3  # characters between two parts of an id
_AROUND = 60  # characters shown before and after a finding
_DIGITS = 16  # of the confirmation
_MOST_BYTES = 16 << 20  # of a file of a protocol
# Entries of questions and of study.json whose values are checked against a list, or written anew.
_CHECKED_ENTRIES = """
schema qa_id study_id patient_id study subtask sequence tier answer_type answer origin protocol key
volume_id view path sha256 sex order spatial_order layout_source confirmed status verdict agreement
"""
_CHECKED = frozenset(_CHECKED_ENTRIES.split())


@dataclass(frozen=True, slots=True)
class Passage:
    """A text and its place in the files that a release is made from; `is_shipped` with CardioLens."""

    file: str
    place: str
    text: str
    is_shipped: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """What may identify somebody, with the text around it and the first of its places."""

    kind: str
    found: str
    before: str
    after: str
    file: str
    place: str


def check_identities(
    spec: Release, catalogue: Catalogue, questions: Sequence[GivenQuestion], studies: Mapping[str, Study]
) -> int:
    """Return the number of confirmed findings; InputError where there are others, or old ids."""
    all_findings = _findings(_passages(spec, catalogue, questions, studies), old_ids(studies))
    if not all_findings:
        return 0
    digest = digest_of([asdict(finding) for finding in all_findings])[:_DIGITS]
    ids = [finding for finding in all_findings if finding.kind == OLD_ID]
    report = spec.out.with_name(f"{spec.out.name}-identities.txt")
    if digest == spec.confirmed and not ids:
        return len(all_findings)
    _write(report, all_findings, "" if ids else digest)
    if ids:
        raise InputError(
            f"{ids[0].file}, {ids[0].place}: holds the old id of a study, patient or report, as "
            f"{len(ids) - 1} other texts do; {report} has all of them; take them out of the texts"
        )
    again = "" if spec.confirmed is None else f"confirmed={spec.confirmed} is of other findings, and "
    first = all_findings[0]
    raise InputError(
        f"{again}{len(all_findings)} texts may name somebody, e.g. {first.file}, {first.place} "
        f"({first.kind}); read {report}, take out what identifies anybody, and once nothing does, add "
        f"confirmed={digest}"
    )


def _findings(passages: Iterable[Passage], ids: frozenset[str]) -> list[Finding]:
    """Return the findings in passages in order; one with the same text around it stands once."""
    findings: dict[tuple[str, ...], Finding] = {}
    distinct: dict[tuple[str, bool], Passage] = {}
    for passage in passages:
        distinct.setdefault((passage.text, passage.is_shipped), passage)
    for passage in distinct.values():
        folded = fold(passage.text)
        spans: list[tuple[str, int, int]] = [*identities(folded)]
        spans += [] if passage.is_shipped else find_ids(folded, ids)
        for kind, start, end in sorted(spans, key=lambda span: span[1:]):
            words = folded[start:end], folded[max(0, start - _AROUND) : start], folded[end : end + _AROUND]
            findings.setdefault((kind, *words), Finding(kind, *words, passage.file, passage.place))
    return list(findings.values())


def _write(report: Path, findings: Sequence[Finding], digest: str) -> None:
    """Write the report with mode 600; `digest` is empty where nothing can be confirmed."""
    how = (
        f"If none of them identifies anybody, give release the word confirmed={digest}"
        if digest
        else "Old ids cannot be confirmed: take them out of the texts"
    )
    lines = [f"{len(findings)} texts that may identify somebody. {how}.", ""]
    for number, finding in enumerate(findings, start=1):
        lines += [f"{number}. {finding.kind}: {finding.file}, {finding.place}"]
        lines += [f"   {finding.before}[[{finding.found}]]{finding.after}".replace("\n", " "), ""]
    disk.write_private(report, "\n".join(lines).encode("utf-8", "backslashreplace"))


def old_ids(studies: Mapping[str, Study]) -> frozenset[str]:
    """Collect the ids of studies, their patients and reports, and the names of their folders.

    Each is its letters and digits, joined and without case.
    """
    names = [
        (study.study_id, study.manifest.patient_id, study.manifest.report_id or "", study.folder.name)
        for study in studies.values()
    ]
    joined = ("".join(_RUN.findall(fold(name))).casefold() for of_study in names for name in of_study)
    return frozenset(name for name in joined if name)


def find_ids(folded: str, ids: frozenset[str]) -> Iterator[tuple[str, int, int]]:
    """Yield where old ids stand in a folded text, however their parts are joined: kind, start and end."""
    runs, longest = list(_RUN.finditer(folded)), max(map(len, ids), default=0)
    for first, start in enumerate(runs):
        joined, end = "", start.start()
        for run in runs[first:]:
            joined += run[0].casefold()
            if len(joined) > longest or run.start() - end > _WIDEST_GAP:
                break
            end = run.end()
            if joined in ids:
                n_letters = sum(map(str.isalnum, folded[start.start() : end]))
                yield OLD_ID if n_letters >= _SHORTEST else SHORT_ID, start.start(), end


def _passages(
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
