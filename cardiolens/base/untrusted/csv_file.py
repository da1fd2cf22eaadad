"""CSV of strangers: UTF-8 with or without a byte order mark, of a bounded size."""

import csv
import io
from pathlib import Path

from cardiolens.base.untrusted.bounded_files import decode, read_bytes


def read_rows(path: Path, most: int) -> list[dict[str, str | None]]:
    """Rows by column name of a file of at most `most` bytes; OSError or ValueError where it is not CSV."""
    return parse_rows(decode(read_bytes(path, most)))


def parse_rows(text: str, delimiter: str = ",") -> list[dict[str, str | None]]:
    """Rows by column name; a cell that is missing is None. ValueError where it is not CSV."""
    try:
        rows = list(
            csv.DictReader(io.StringIO(text, newline=""), restkey="", restval=None, delimiter=delimiter)
        )
    except csv.Error as error:
        raise ValueError(f"not CSV ({error})") from None
    return [{name: value for name, value in row.items() if name} for row in rows]
