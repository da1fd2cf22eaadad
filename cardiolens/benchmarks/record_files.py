"""Rows of the files of a benchmark: JSON, JSON Lines, Parquet, TSV and CSV, one by one and by place."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import lines_from, open_binary, parse_json, read_json
from cardiolens.base.untrusted.csv_file import rows_from
from cardiolens.storage import tables

_AT_ONCE = 64  # rows of Parquet as Python objects
_DELIMITER = {".tsv": "\t", ".csv": ","}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a row stands: its number for people, and the byte or the index at which it is found again."""

    path: Path
    number: int  # from 1
    at: int

    def __str__(self) -> str:
        if self.path.suffix in (".jsonl", ".ndjson"):
            return f"{self.path}:{self.number}"
        return f"{self.path}, {'record' if self.path.suffix == '.json' else 'row'} {self.number}"


@dataclass(frozen=True, slots=True)
class Row:
    """One record, or what is wrong with it as a whole."""

    place: Place
    record: Mapping[str, Any]
    error: str = ""


def rows_of(path: Path, without: Collection[str] = ()) -> Iterator[Row]:
    """Yield the rows of a file by its suffix; of Parquet, columns in `without` are not read."""
    if path.suffix == ".parquet":
        entries = _parquet(path, without)
    elif path.suffix in _READERS:
        entries = _READERS[path.suffix](path)
    else:
        raise InputError(
            f"{path}: ends in {path.suffix or 'nothing'}; expected {', '.join([*_READERS, '.parquet'])}"
        )
    for number, (at, entry, error) in enumerate(entries, start=1):
        is_record = isinstance(entry, dict)
        problem = error or ("" if is_record else f"is {type(entry).__name__}; expected a JSON object")
        yield Row(Place(path, number, at), entry if is_record else {}, problem)


def columns_of(path: Path) -> list[str] | None:
    """Return the columns that a file declares; None for JSON, where each record has its own."""
    if path.suffix == ".parquet":
        with _opened(path) as file:
            return list(file.schema_arrow.names)
    return next(_cells(path, 0), (0, []))[1] if path.suffix in _DELIMITER else None


def value_at(place: Place, column: str) -> object:
    """Return one value of a row, read again from its file."""
    suffix = place.path.suffix
    if suffix == ".parquet":
        return _from_parquet(place.path, place.at, column)
    if suffix == ".json":
        return value_of(_list(place.path)[place.at], column)
    if suffix in _DELIMITER:
        names = columns_of(place.path) or []
        return dict(zip(names, next(_cells(place.path, place.at))[1], strict=False)).get(column)
    with open_binary(place.path) as file:
        file.seek(place.at)
        return value_of(parse_json(file.readline()), column)


def value_of(record: object, column: str) -> Any:
    """Return the value of a column, or of a path into it (`conversations.0.value`); None if there is none."""
    if isinstance(record, Mapping) and column in record:
        return record[column]
    value = record
    for step in column.split("."):
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


_Entry = tuple[int, Any, str]
"""Where a row is found again, what it holds, and what is wrong with it."""


def _json(path: Path) -> Iterator[_Entry]:
    for at, entry in enumerate(_list(path)):
        yield at, entry, ""


@lru_cache(maxsize=1)
def _list(path: Path) -> list[Any]:
    """The records of a file: a list, or an object with a list named data."""
    try:
        tree = read_json(path)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as JSON ({error}); download it anew") from None
    entries = tree.get("data") if isinstance(tree, dict) else tree
    if not isinstance(entries, list) or not entries:
        kind = "an empty list" if entries == [] else type(tree).__name__
        raise InputError(
            f"{path}: is {kind}; expected a list of records, or an object with it as data; download it anew"
        )
    return entries


def _json_lines(path: Path) -> Iterator[_Entry]:
    try:
        for at, line in lines_from(path, 0):
            if not line.strip():
                continue
            try:
                yield at, parse_json(line), ""
            except ValueError as error:
                yield at, None, f"not JSON ({error}); expected one record per line; download it anew"
    except (OSError, UnicodeError) as error:
        raise InputError(f"{path}: cannot be read as UTF-8 text ({error})") from None


def _cells(path: Path, at: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of rows from a byte on, each row with the byte at which it begins."""
    try:
        yield from rows_from(path, at, _DELIMITER[path.suffix])
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {error}; save it anew") from None


def _separated(path: Path) -> Iterator[_Entry]:
    rows = _cells(path, 0)
    _, names = next(rows, (0, []))
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"{path}: column {twice[0]!r} is there twice; rename one of them")
    for at, cells in filter(itemgetter(1), rows):  # without blank lines
        is_whole = len(cells) == len(names)
        error = "" if is_whole else f"has {len(cells)} cells; expected {len(names)}, as in the first line"
        yield at, dict(zip(names, cells, strict=False)), error


_READERS: Mapping[str, Callable[[Path], Iterator[_Entry]]] = {
    ".json": _json,
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".tsv": _separated,
    ".csv": _separated,
}


def _opened(path: Path) -> pq.ParquetFile:
    try:
        return tables.open_part(path)
    except tables.UNREADABLE as error:
        raise _not_whole(path, error) from None


def _not_whole(path: Path, error: Exception) -> InputError:
    return InputError(f"{path}: not a whole Parquet file ({str(error).splitlines()[0]}); download it anew")


def _parquet(path: Path, without: Collection[str]) -> Iterator[_Entry]:
    with _opened(path) as file:
        names = [name for name in file.schema_arrow.names if name not in without]
        try:
            batches = file.iter_batches(_AT_ONCE, columns=names, use_threads=False)
            for at, record in enumerate(record for batch in batches for record in batch.to_pylist()):
                yield at, record, ""
        except tables.UNREADABLE as error:
            raise _not_whole(path, error) from None


def _from_parquet(path: Path, at: int, column: str) -> object:
    with _opened(path) as file:
        for group in range(file.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            if at < rows:
                return file.read_row_group(group, columns=[column])[column][at].as_py()
            at -= rows
    return None


def quoted(value: object) -> str:
    """Return a value as messages quote it."""
    return "missing" if value is None else json.dumps(value, ensure_ascii=False, default=str)[:60]
