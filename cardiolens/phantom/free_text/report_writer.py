"""Write free-text reports: one text file per study, a link table, and a separate truth file."""

import csv
import io
import json
import shutil
from collections.abc import Iterable
from pathlib import Path

from cardiolens.base.errors import InputError, RunError
from cardiolens.config.dataset import PhantomSpec
from cardiolens.phantom.free_text.free_report import free_report
from cardiolens.phantom.roster import PROTOCOL, roster, study
from cardiolens.protocol.tasks.catalogue import load_catalogue

REPORTS, LINKS, TRUTH = "reports", "reports.csv", "report_truth.jsonl"


def make_reports(spec: PhantomSpec, folder: Path, protocol: str = PROTOCOL) -> None:
    """Make the reports of a cohort without its images; the folder must be absent or empty.

    All files are written to a temporary folder that is renamed at the end.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: is not empty; give a folder that is absent or empty, or delete it first")
    ids = roster(spec)
    temporary = folder.with_name(f".{folder.name}.making")
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        write_reports(spec, ids, temporary, protocol)
        if folder.exists():
            folder.rmdir()
        temporary.replace(folder)
    except OSError as error:
        reason = error.strerror or error
        raise RunError(f"{folder}: cannot be written ({reason}); free space or check permissions") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_reports(spec: PhantomSpec, ids: Iterable[str], folder: Path, protocol: str = PROTOCOL) -> None:
    """Write `reports/<accession>.txt`, `reports.csv` and `report_truth.jsonl`."""
    tasks = load_catalogue(protocol)
    documents = [free_report(study(spec.seed, study_id), tasks) for study_id in ids]
    (folder / REPORTS).mkdir(parents=True)
    for document in documents:
        (folder / REPORTS / f"{document.accession}.txt").write_text(document.text, encoding="utf-8")
    table = io.StringIO()
    rows = csv.writer(table, lineterminator="\n")
    rows.writerow(["accession", "study_id", "sex"])
    rows.writerows([document.accession, document.study_id, document.sex] for document in documents)
    (folder / LINKS).write_text(table.getvalue(), encoding="utf-8")
    lines = [json.dumps(document.truth, ensure_ascii=False) for document in documents]
    (folder / TRUTH).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
