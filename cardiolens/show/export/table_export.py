"""Export of a run: its items as CSV and JSON Lines, its tables as Markdown and LaTeX."""

import csv
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from cardiolens.base import disk
from cardiolens.show.export.paper import latex, markdown
from cardiolens.show.page.embed import tables_of
from cardiolens.show.page.page_data import read_facts
from cardiolens.show.page.page_rendering import SECTIONS
from cardiolens.storage import schemas, tables
from cardiolens.storage.documents import release_of
from cardiolens.storage.places import Run

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?")
_BATCH = 65_536  # verdicts in memory at once
# Tables short enough for a paper; longer ones can be saved from the page.
_PAPER = (
    "headlines",
    "questions",
    "slice_scores",
    "readings_by_model",
    "readings_of_peers",
    "usage",
)


def export(run: Run, *, patient_ids: bool) -> Path:
    """Write the exported files of a judged run, and return their folder."""
    folder = run.root / "export"
    folder.mkdir(exist_ok=True)
    _write_items(run, folder, [] if patient_ids else ["patient_id"])
    facts = read_facts(run, [run])
    by_name = tables_of([make(facts) for make in SECTIONS])
    paper_tables = [by_name[name] for name in _PAPER if name in by_name]
    release = release_of(facts.manifests[0])
    of_release = "" if release is None else f"Of {release}.\n\n"
    disk.write_text(folder / "tables.md", of_release + "\n".join(map(markdown, paper_tables)))
    commented = of_release and f"% {of_release}"
    disk.write_text(folder / "tables.tex", commented + "\n".join(map(latex, paper_tables)))
    return folder


def _write_items(run: Run, folder: Path, without: list[str]) -> None:
    columns = [name for name in schemas.VERDICTS.names if name not in without]
    with (
        disk.atomic(folder / "items.csv") as as_csv,
        disk.atomic(folder / "items.jsonl") as as_lines,
        disk.open_text(as_csv) as csv_file,
        disk.open_text(as_lines) as line_file,
    ):
        writer = csv.DictWriter(csv_file, columns)
        writer.writeheader()
        for item in _items(run, columns):
            writer.writerow({name: _cell(value) for name, value in item.items()})
            line_file.write(json.dumps(item, ensure_ascii=False) + "\n")


def _items(run: Run, columns: list[str]) -> Iterator[dict[str, Any]]:
    verdicts = tables.read(run.verdicts, schemas.VERDICTS, columns)
    order = [(name, "ascending") for name in ("arm_id", "qa_id", "channel")]
    verdicts = verdicts.take(pc.sort_indices(verdicts, sort_keys=order))
    for batch in verdicts.to_batches(max_chunksize=_BATCH):
        for row in batch.to_pylist():
            yield row | {"counts": dict(row["counts"] or [])}


def _cell(value: object) -> object:
    """CSV cell of a value: a list as its entries separated by semicolons, counts as JSON, text as text."""
    if isinstance(value, list):
        value = "; ".join(map(str, value))
    elif isinstance(value, Mapping):
        value = json.dumps(value)
    return as_text(value) if isinstance(value, str) else value


def as_text(cell: str) -> str:
    """Prefix a cell that a spreadsheet would evaluate as a formula with an apostrophe."""
    return f"'{cell}" if cell.startswith(_FORMULA) and not _NUMBER.fullmatch(cell) else cell
