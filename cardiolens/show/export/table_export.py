"""Export of a run: its items as CSV, its tables as LaTeX."""

import csv
import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow.compute as pc

from cardiolens.base import disk
from cardiolens.score.claims.sentences import signed
from cardiolens.show.page.elements import Cell, Kind, Table
from cardiolens.show.page.page_data import read_facts
from cardiolens.show.page.sections.page_sections import table_of
from cardiolens.storage import schemas, tables
from cardiolens.storage.documents import release_of
from cardiolens.storage.places import Run

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?")
_BATCH = 65_536  # verdicts in memory at once
# Tables short enough for a paper; longer ones can be saved from the page.
_PAPER = ("headlines", "questions", "slice_scores", "readings_by_model", "readings_of_peers", "models")

_LATEX = str.maketrans(
    {"&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}
    | {"−": r"$-$", "′": "$'$", "–": "--", "·": r"$\cdot$", "<": r"$<$", ">": r"$>$"}
)
_LEFT_OUT = frozenset({"method"})  # a sentence in every row, too long here; the CSV file has it


def export(run: Run, *, patient_ids: bool) -> Path:
    """Write the exported files of a judged run, and return their folder."""
    folder = run.root / "export"
    _write_items(run, folder, [] if patient_ids else ["patient_id"])
    facts = read_facts(run, [run])
    paper_tables = [table_of(facts, name) for name in _PAPER]
    release = release_of(facts.manifests[0])
    of_release = "" if release is None else f"% Of {release}.\n\n"
    texts = [latex(table) for table in paper_tables if table.rows]
    disk.write_text(folder / "tables.tex", of_release + "\n".join(texts))
    return folder


def _write_items(run: Run, folder: Path, without: list[str]) -> None:
    columns = [name for name in schemas.VERDICTS.names if name not in without]
    verdicts = tables.read(run.verdicts, schemas.VERDICTS, columns)
    order = [(name, "ascending") for name in ("arm_id", "qa_id", "channel")]
    verdicts = verdicts.take(pc.sort_indices(verdicts, sort_keys=order))
    with disk.atomic(folder / "items.csv") as temporary, disk.open_text(temporary) as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        for batch in verdicts.to_batches(max_chunksize=_BATCH):
            for row in batch.to_pylist():
                item = row | {"counts": dict(row["counts"] or [])}
                writer.writerow({name: _cell(value) for name, value in item.items()})


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


def format_cell(value: Cell, kind: Kind) -> str:
    """Write a cell: one decimal for scores and points, three for p-values, a dash for undefined."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool | str):
        return str(value)
    if kind == "count":
        return f"{value:,}"
    if kind == "p":
        return "< 0.001" if value < 0.001 else f"{value:.3f}"
    if kind == "points":
        text = signed(float(value))
        return f"+{text}" if value > 0 and text != "0.0" else text
    return signed(float(value)) if kind == "score" else f"{value:g}"


def latex(table: Table) -> str:
    """Write a table as a LaTeX table environment with booktabs rules."""
    shown = [(at, column) for at, column in enumerate(table.columns) if column.name not in _LEFT_OUT]
    kinds = "".join("l" if column.kind == "text" else "r" for _, column in shown)
    rows = [[format_cell(row[at], column.kind) for at, column in shown] for row in table.rows]
    lines = [
        r"\begin{table}",
        rf"\caption{{{table.title.translate(_LATEX)}}}",
        rf"\label{{tab:{table.name.replace('_', '-')}}}",
        rf"\begin{{tabular}}{{{kinds}}}",
        r"\toprule",
        _ampersands([column.title for _, column in shown]),
        r"\midrule",
        *map(_ampersands, rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
        "",
    ]
    return "\n".join(lines)


def _ampersands(cells: Sequence[str]) -> str:
    return " & ".join(cell.translate(_LATEX) for cell in cells) + r" \\"
