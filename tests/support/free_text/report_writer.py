"""Write free-text reports: one text file per study, a link table, and a separate truth file."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path

from cardiolens.base import disk
from cardiolens.config.dataset import PhantomSpec
from cardiolens.phantom.phantom_cohort import planned
from cardiolens.phantom.roster import PROTOCOL, study
from cardiolens.protocol.tasks.catalogue import load_catalogue
from tests.support.free_text.free_report import FreeReport, free_report

REPORTS, LINKS, TRUTH = "reports", "reports.csv", "report_truth.jsonl"


def make_reports(spec: PhantomSpec, folder: Path, protocol: str = PROTOCOL) -> None:
    """Make the reports of a cohort without its images; the folder must be absent or empty.

    All files are written to a temporary folder that is renamed at the end.
    """
    ids, tasks = planned(spec, folder), load_catalogue(protocol)
    documents = [free_report(study(spec.seed, study_id), tasks) for study_id in ids]
    with disk.draft_folder(folder) as draft:
        _write(documents, draft)


def _write(documents: Sequence[FreeReport], folder: Path) -> None:
    """Write `reports/<accession>.txt`, `reports.csv` and `report_truth.jsonl`."""
    for document in documents:
        disk.write_draft(folder / REPORTS / f"{document.accession}.txt", document.text.encode())
    table = io.StringIO()
    rows = csv.writer(table, lineterminator="\n")
    rows.writerow(["accession", "study_id", "sex"])
    rows.writerows([document.accession, document.study_id, document.sex] for document in documents)
    disk.write_draft(folder / LINKS, table.getvalue().encode())
    lines = [json.dumps(document.truth, ensure_ascii=False) for document in documents]
    disk.write_draft(folder / TRUTH, "".join(f"{line}\n" for line in lines).encode())
