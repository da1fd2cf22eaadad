"""Tables of a page as Markdown and LaTeX for a paper, with cells as the page prints them."""

import math
from collections.abc import Sequence

from cardiolens.score.claims.sentences import signed
from cardiolens.show.page.elements import Cell, Column, Kind, Table

_LATEX = str.maketrans(
    {"&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}
    | {"−": r"$-$", "–": "--", "·": r"$\cdot$", "<": r"$<$", ">": r"$>$"}
)
_LEFT_OUT = frozenset({"method"})  # a sentence in every row, too long here; the CSV file has it


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


def markdown(table: Table) -> str:
    """Write a table as a heading and a Markdown pipe table."""
    columns = _columns(table)
    head = [_pipe_row([column.title for _, column in columns])]
    rule = _pipe_row(["---" if column.kind == "text" else "---:" for _, column in columns])
    rows = [_pipe_row(_cells(row, columns)) for row in table.rows]
    return "\n".join([f"## {table.title}", "", *head, rule, *rows, ""])


def latex(table: Table) -> str:
    """Write a table as a LaTeX table environment with booktabs rules."""
    columns = _columns(table)
    kinds = "".join("l" if column.kind == "text" else "r" for _, column in columns)
    rows = [_ampersands(_cells(row, columns)) for row in table.rows]
    lines = [
        r"\begin{table}",
        rf"\caption{{{table.title.translate(_LATEX)}}}",
        rf"\label{{tab:{table.name.replace('_', '-')}}}",
        rf"\begin{{tabular}}{{{kinds}}}",
        r"\toprule",
        _ampersands([column.title for _, column in columns]),
        r"\midrule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
        "",
    ]
    return "\n".join(lines)


def _columns(table: Table) -> list[tuple[int, Column]]:
    return [(at, column) for at, column in enumerate(table.columns) if column.name not in _LEFT_OUT]


def _cells(row: Sequence[Cell], columns: Sequence[tuple[int, Column]]) -> list[str]:
    return [format_cell(row[at], column.kind) for at, column in columns]


def _pipe_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|').replace(chr(10), ' ') for cell in cells)} |"


def _ampersands(cells: Sequence[str]) -> str:
    return " & ".join(cell.translate(_LATEX) for cell in cells) + r" \\"
