"""Reading reports from files or rows of a table, and linking each to its study.

File names and texts may contain names, numbers or dates of patients, so no message quotes them. Messages
refer to a report by its position in the source or by a digest of its text.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cardiolens.base.errors import InputError
from cardiolens.base.private_file import check_private
from cardiolens.base.untrusted.bounded_files import parse_json, read_bytes, read_text
from cardiolens.base.untrusted.csv_file import parse_rows
from cardiolens.curation.questions.draft_reasons import Reason, meaning_of
from cardiolens.storage.schemas import FRAME
from cardiolens.study.manifest import StudyManifest, read_studies

MOST_CHARACTERS = 100_000  # of a report
_MOST_TABLE = 1 << 30  # bytes of a table of reports
_COLUMNS = ("text", "study_id", "report_id", "accession", "sex")
_SEXES = {"m": "male", "male": "male", "f": "female", "female": "female", "w": "female"}


@dataclass(frozen=True, slots=True)
class Report:
    """A report that is linked to a study."""

    report_id: str  # of its text
    number: int  # its place in the source
    text: str
    study_id: str
    sex: str | None
    sequences: tuple[str, ...]  # that the study has


@dataclass(frozen=True, slots=True)
class _Raw:
    number: int
    text: str | None  # None where the file is no text
    names: tuple[str, ...]  # any of which may be a study's
    sex: str | None = None


Rejects = list[dict[str, Any]]


def reject(stage: int, reason: str, **where: Any) -> dict[str, Any]:
    """Return a line of `rejects.jsonl`."""
    return {"stage": stage, "reason": str(reason), **where, "meaning": meaning_of(str(reason))}


def read_reports(reports: Path, studies: Path, links: Path | None) -> tuple[list[Report], Rejects]:
    """Return the readable reports that are linked to exactly one study each, and the rejects.

    InputError if there is no report or no study at all.
    """
    study_of = {name: study.manifest for name, study in read_studies(studies, "studies").items()}
    names = _names(study_of, {} if links is None else read_links(links))
    raw = list(_table(reports) if reports.is_file() else _folder(reports))
    if not raw:
        raise InputError(f"reports={reports}: holds no report; expected *.txt files or rows of CSV")
    found: list[Report] = []
    rejects: Rejects = []
    for record in raw:
        named = {names[name] for name in record.names if name in names}
        study_id = named.pop() if len(named) == 1 else None
        reason = _unusable(record.text) or (Reason.NO_STUDY if study_id is None else None)
        if reason is not None or study_id is None or record.text is None:
            rejects.append(reject(1, reason or Reason.NO_STUDY, number=record.number, study_id=study_id))
            continue
        manifest = study_of[study_id]
        sequences = tuple(dict.fromkeys(volume.sequence for volume in manifest.volumes))
        sex = record.sex or (manifest.sex if manifest.sex in ("male", "female") else None)
        report_id = f"R-{hashlib.sha256(record.text.encode()).hexdigest()[:16]}"
        found.append(Report(report_id, record.number, record.text, study_id, sex, sequences))
    return _one_a_study(found, rejects), rejects


def read_links(path: Path) -> dict[str, str]:
    """Read study ids by accession number, from CSV with these columns or JSON Lines of `links`.

    InputError if the latter names patients and is open to others.
    """
    try:
        text = read_text(path, _MOST_TABLE)
        if text.lstrip()[:1] in ("{", "["):  # JSON Lines, whatever the file is called
            records = [parse_json(line) for line in text.splitlines() if line.strip()]
            rows: list[Mapping[str, Any]] = [row for row in records if isinstance(row, dict)]
        else:
            rows = list(parse_rows(text))
    except (OSError, ValueError) as error:
        raise InputError(
            f"links={path}: cannot be read ({type(error).__name__}); expected CSV or JSON Lines"
        ) from None
    if any("patient" in row for row in rows):
        check_private(path, f"links={path}", "find the patients behind the ids")
    pairs = [(row.get("accession"), row.get("study_id")) for row in rows if row.get("study_id")]
    if not pairs or not any(accession for accession, _ in pairs):
        raise InputError(f"links={path}: has no row with accession and study_id; give both columns")
    studies_of: dict[str, set[str]] = {}
    for accession, study_id in pairs:
        if accession:
            studies_of.setdefault(str(accession).strip(), set()).add(str(study_id))
    # an accession number of two studies leads to none
    return {accession: next(iter(ids)) for accession, ids in studies_of.items() if len(ids) == 1}


def _names(studies: Mapping[str, StudyManifest], links: Mapping[str, str]) -> dict[str, str]:
    """Return study ids by every name that a report may use; ambiguous names are left out."""
    pairs = [(study_id, study_id) for study_id in studies]
    pairs += [(study.report_id, study_id) for study_id, study in studies.items() if study.report_id]
    pairs += [(accession, study_id) for accession, study_id in links.items() if study_id in studies]
    several = Counter(name for name, _ in set(pairs))
    return {name: study_id for name, study_id in pairs if several[name] == 1}


def _folder(folder: Path) -> Iterator[_Raw]:
    if not folder.is_dir():
        raise InputError(f"reports={folder}: no such folder or file; correct reports")
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() == ".txt")
    for number, path in enumerate(paths, start=1):
        try:
            text = read_bytes(path, 4 * MOST_CHARACTERS).decode("utf-8-sig")
        except (OSError, UnicodeDecodeError):
            text = None
        yield _Raw(number, text, (path.stem,))


def _table(path: Path) -> Iterator[_Raw]:
    try:
        rows = parse_rows(read_text(path, _MOST_TABLE))
    except (OSError, ValueError) as error:
        reason = error if type(error) is ValueError else type(error).__name__
        raise InputError(f"reports={path}: cannot be read ({reason}); expected a CSV file in UTF-8") from None
    columns = set(rows[0]) if rows else set()
    if rows and ("text" not in columns or not columns & {"study_id", "report_id", "accession"}):
        raise InputError(
            f"reports={path}: expected the columns text and one of study_id, report_id, accession; "
            f"legal are {', '.join(_COLUMNS)}"
        )
    for number, row in enumerate(rows, start=1):
        names = tuple(
            (row[name] or "").strip() for name in ("study_id", "report_id", "accession") if row.get(name)
        )
        yield _Raw(number, row["text"] or "", names, _SEXES.get((row.get("sex") or "").strip().lower()))


def _unusable(text: str | None) -> Reason | None:
    if text is None:
        return Reason.UNREADABLE
    if not text.strip():
        return Reason.EMPTY
    if len(text) > MOST_CHARACTERS:
        return Reason.TOO_LONG
    return Reason.FRAME_MARK if FRAME in text else None


def _one_a_study(reports: list[Report], rejects: Rejects) -> list[Report]:
    """Return the reports that are the only one of their study; identical texts count once."""
    distinct = list({(report.study_id, report.report_id): report for report in reversed(reports)}.values())
    several = Counter(report.study_id for report in distinct)
    for report in distinct:
        if several[report.study_id] > 1:
            rejects.append(reject(1, Reason.SEVERAL_REPORTS, number=report.number, study_id=report.study_id))
    unique = [report for report in distinct if several[report.study_id] == 1]
    return sorted(unique, key=lambda report: report.study_id)
