"""Rows of the files of a benchmark: JSON, JSON Lines, Parquet, TSV and CSV, one by one and by place."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
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


@dataclass(frozen=True, slots=True)
class EmbeddedImages:
    """Stands for images that Parquet holds, which are read when they are decoded."""

    count: int
    is_list: bool


def rows_of(path: Path, image_columns: Collection[str] = (), *, counted: bool = True) -> Iterator[Row]:
    """Yield the rows of a file by its suffix; of Parquet without the bytes in the columns `image_columns`.

    Unless they are `counted`, those columns are not read at all.
    """
    if path.suffix == ".parquet":
        return _parquet(path, image_columns, counted=counted)
    if path.suffix not in _READERS:
        raise InputError(
            f"{path}: ends in {path.suffix or 'nothing'}; expected {', '.join([*_READERS, '.parquet'])}"
        )
    return _READERS[path.suffix](path)


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


def _json(path: Path) -> Iterator[Row]:
    for at, entry in enumerate(_list(path)):
        yield _row(Place(path, at + 1, at), entry)


@lru_cache(maxsize=1)
def _list(path: Path) -> list[Any]:
    try:
        entries = read_json(path)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as JSON ({error}); download it anew") from None
    if not isinstance(entries, list) or not entries:
        kind = "an empty list" if entries == [] else type(entries).__name__
        raise InputError(f"{path}: is {kind}; expected a list of records; download it anew")
    return entries


def _json_lines(path: Path) -> Iterator[Row]:
    for number, (at, line) in enumerate(_lines(path), start=1):
        place = Place(path, number, at)
        try:
            entry = parse_json(line)
        except ValueError as error:
            yield Row(place, {}, f"not JSON ({error}); expected one record per line; download it anew")
        else:
            yield _row(place, entry)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        yield from lines_from(path, 0)
    except (OSError, UnicodeError) as error:
        raise InputError(f"{path}: cannot be read as UTF-8 text ({error})") from None


def _row(place: Place, entry: object) -> Row:
    if isinstance(entry, dict):
        return Row(place, entry)
    return Row(place, {}, f"is {type(entry).__name__}; expected a JSON object")


def _cells(path: Path, at: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of rows from a byte on, each row with the byte at which it begins."""
    try:
        yield from rows_from(path, at, _DELIMITER[path.suffix])
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {error}; save it anew") from None


def _separated(path: Path) -> Iterator[Row]:
    rows = _cells(path, 0)
    _, names = next(rows, (0, []))
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"{path}: column {twice[0]!r} is there twice; rename one of them")
    for number, (at, cells) in enumerate(rows, start=1):
        place = Place(path, number, at)
        if len(cells) != len(names):
            yield Row(place, {}, f"has {len(cells)} cells; expected {len(names)}, as in the first line")
        else:
            yield Row(place, dict(zip(names, cells, strict=True)))


_READERS: Mapping[str, Callable[[Path], Iterator[Row]]] = {
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


def _parquet(path: Path, image_columns: Collection[str], *, counted: bool) -> Iterator[Row]:
    number = 0
    with _opened(path) as file:
        names = [name for name in file.schema_arrow.names if counted or name not in image_columns]
        try:
            for batch in file.iter_batches(_AT_ONCE, columns=names, use_threads=False):
                columns = [name for name in batch.schema.names if name not in image_columns]
                counts = {name: _counts(batch[name]) for name in batch.schema.names if name in image_columns}
                for at, record in enumerate(batch.select(columns).to_pylist()):
                    number += 1
                    images = {
                        name: EmbeddedImages(count[at], _is_list(batch[name].type))
                        for name, count in counts.items()
                        if count[at]
                    }
                    yield Row(Place(path, number, number - 1), {**record, **images})
        except tables.UNREADABLE as error:
            raise _not_whole(path, error) from None


def _counts(values: pa.Array) -> list[int]:
    """Return how many images each value holds: those of a list, or one unless it is null."""
    if _is_list(values.type):
        return [count or 0 for count in pc.list_value_length(values).to_pylist()]
    return [int(valid) for valid in values.is_valid().to_pylist()]


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


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
