"""CSV of strangers: UTF-8 with or without a byte order mark, of a bounded size."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from cardiolens.base.untrusted.bounded_files import lines_from

csv.field_size_limit(512 << 20)  # bytes; an image as base64 is one cell


def parse_rows(text: str, delimiter: str = ",") -> list[dict[str, str | None]]:
    """Rows by column name; a missing cell is None. ValueError, which quotes nothing, where it is not CSV."""
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        rows = list(reader)
    except csv.Error as error:
        raise ValueError(f"not CSV: {error}") from None
    names = list(filter(None, reader.fieldnames or ()))
    if len({*names}) < len(names):
        raise ValueError("a column stands twice")
    for number, row in enumerate(rows, start=1):
        if any(row.get(None, ())):
            raise ValueError(f"row {number} has more cells than columns; quote cells that hold {delimiter!r}")
    return [{name: row[name] for name in names} for row in rows]


def rows_from(path: Path, at: int, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of rows from a byte on, each row with the byte at which it begins.

    OSError or ValueError where the file is not CSV.
    """
    begins: list[int] = []

    def lines() -> Iterator[str]:
        for start, line in lines_from(path, at):
            begins.append(start)
            yield line

    rows = csv.reader(lines(), delimiter=delimiter, strict=True)
    while True:
        begins.clear()
        try:
            cells = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            raise ValueError(f"line {rows.line_num} is no row ({error})") from None
        yield begins[0], cells
