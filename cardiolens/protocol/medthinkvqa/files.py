"""The file of a split, JSON Lines or Parquet, and the images that it references or embeds."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow.parquet as pq

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import parse_json, read_bytes, read_text
from cardiolens.protocol.medthinkvqa.case import MOST_IMAGES, Case, CaseImage, read_case
from cardiolens.storage import tables

Split = Literal["train", "test"]
_MOST_BYTES = 256 << 20  # of an image file
_EMBEDDED = tuple(f"image_{number:02d}" for number in range(1, MOST_IMAGES + 1))
_AT_ONCE = 64  # rows of Parquet as Python objects


@dataclass(frozen=True, slots=True)
class Source:
    """The file of one split below a root."""

    root: Path
    path: Path
    split: Split

    @staticmethod
    def of(root: Path, split: Split) -> "Source":
        """Find the file of a split; JSON Lines is preferred to Parquet, as their contents are the same."""
        names = [f"{split}.jsonl", f"{split}.parquet"]
        for name in names:
            if (root / name).exists():
                return Source(root, root / name, split)
        raise InputError(
            f"{root}: has no {' or '.join(names)}; expected the folder of the downloaded data, with images/ "
            "beside these files; correct dataset.root"
        )

    @property
    def is_parquet(self) -> bool:
        return self.path.suffix == ".parquet"

    def name_of(self, number: int) -> str:
        """Return the study name of a case: its split and position in the file."""
        return f"{self.split}-{number:05d}"

    @property
    def holds_cases(self) -> bool:
        """Return whether each line or row of the file is a case; else pictures stand in lists of records."""
        return self.path.suffix in (".jsonl", ".parquet")

    def where(self, number: int) -> str:
        """Return the location of a case or picture for messages."""
        if not self.holds_cases:
            return f"{self.path}, picture {number}"
        return f"{self.path}, row {number}" if self.is_parquet else f"{self.path}:{number}"


def records(source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the records of a file with line or row number; InputError for a malformed one."""
    return _rows(source) if source.is_parquet else _lines(source)


def cases(source: Source) -> Iterator[tuple[int, Case | InputError]]:
    """Yield the cases of a file in order; for an invalid one, its error instead."""
    embedded = embeds(source)
    for number, record in records(source):
        try:
            yield number, read_case(record, number, embeds=embedded)
        except InputError as error:
            yield number, InputError(f"{source.where(number)}: {error}")


def _lines(source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        text = read_text(source.path)
    except (OSError, UnicodeError) as error:
        raise InputError(f"{source.path}: cannot be read as UTF-8 text ({error})") from None
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        try:
            record = parse_json(line)
        except ValueError as error:
            raise InputError(
                f"{source.where(number)}: not JSON ({error}); expected one case per line; download it anew"
            ) from None
        if not isinstance(record, dict):
            raise InputError(
                f"{source.where(number)}: is {type(record).__name__}; expected a JSON object per line"
            )
        yield number, record


def _rows(source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield rows without embedded images, which are read on demand."""
    try:
        with tables.open_part(source.path) as file:
            names = [name for name in file.schema_arrow.names if name not in _EMBEDDED]
            number = 0
            for batch in file.iter_batches(_AT_ONCE, columns=names, use_threads=False):
                for record in batch.to_pylist():
                    number += 1
                    yield number, record
    except tables.UNREADABLE as error:
        raise InputError(
            f"{source.path}: not a whole Parquet file ({str(error).splitlines()[0]}); download it anew"
        ) from None


def embeds(source: Source) -> bool:
    """Return whether the file embeds images."""
    if not source.is_parquet:
        return False
    try:
        with tables.open_part(source.path) as file:
            return any(name in _EMBEDDED for name in file.schema_arrow.names)
    except tables.UNREADABLE as error:
        raise InputError(
            f"{source.path}: not a whole Parquet file ({str(error).splitlines()[0]}); download it anew"
        ) from None


def image_bytes(source: Source, number: int, image: CaseImage) -> bytes:
    """Return the encoded bytes of an image, from its file or else from the Parquet row."""
    path = source.root / image.path
    if image.path and (path.exists() or path.is_symlink()):
        if not path.resolve().is_relative_to(source.root.resolve()):
            raise InputError("leads out of the folder of the data by a link; copy the file there")
        try:
            return read_bytes(path, _MOST_BYTES)
        except OSError as error:
            raise InputError(f"cannot be read ({error.strerror}); check it and its permissions") from None
    if source.is_parquet and (content := _embedded(source.path, number, f"image_{image.number:02d}")):
        return content
    raise InputError("is not there; expected every image that the file names; download the images too")


def _embedded(path: Path, number: int, column: str) -> bytes | None:
    """Return an embedded image, stored as {bytes, path} or binary; None if there is none."""
    with pq.ParquetFile(path) as file:
        if column not in file.schema_arrow.names:
            return None
        at = number - 1
        for group in range(file.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            if at < rows:
                value = file.read_row_group(group, columns=[column])[column][at].as_py()
                value = value.get("bytes") if isinstance(value, Mapping) else value
                return value if isinstance(value, bytes) else None
            at -= rows
    return None


def sha256_of_bytes(stored: bytes) -> str:
    """Return the SHA-256 of bytes in hex."""
    return hashlib.sha256(stored).hexdigest()
