"""Files that others give: ordinary files alone, of a bounded size, in UTF-8, and without two meanings."""

import errno
import json
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import yaml

MOST_BYTES = 4 << 30  # bytes of a file that is held in memory
MOST_JSON = 256 << 20  # bytes of a JSON file; a cohort.json of a hundred thousand studies has 60 MiB
_MOST_LEVELS = 200  # of YAML: beyond some thousands the loader in C ends the process

BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # of UTF-8; some editors set it
_OTHER_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")  # of UTF-16 and UTF-32
_HOUSEKEEPING = frozenset(
    {"__macosx", ".ipynb_checkpoints", ".git", "@eadir", ".ds_store", "thumbs.db", "desktop.ini"}
)


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """Bytes of an ordinary file; OSError for a pipe, a device, a socket, or more than `most` bytes."""
    with open_binary(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise OSError(errno.EFBIG, f"it has {size:,} bytes; expected at most {most:,}", str(path))
        return file.read()


def read_start(path: Path, most: int) -> bytes:
    """The first bytes of an ordinary file, at most `most`; OSError as for `read_bytes`."""
    with open_binary(path) as file:
        return file.read(most)


def open_binary(path: Path) -> BinaryIO:
    """An ordinary file opened for reading; OSError as for `read_bytes`.

    Opened without waiting: a pipe that nobody writes to would hold its reader for ever.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return open(handle, "rb")
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    kind = {"p": "a pipe", "s": "a socket"}.get(stat.filemode(mode)[0], "a device")
    raise OSError(errno.EINVAL, f"it is {kind}, not a file", str(path))


def read_text(path: Path, most: int = MOST_BYTES) -> str:
    """Text of an ordinary file; OSError or UnicodeError where it cannot be read."""
    return decode(read_bytes(path, most))


def lines_from(path: Path, at: int) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text from a byte on, with the bytes at which they begin; errors as `read_text`."""
    with open_binary(path) as file:
        file.seek(at)
        for line in file:
            yield at, decode(line)
            at += len(line)


def decode(stored: bytes) -> str:
    """Text of bytes in UTF-8, without a byte order mark; UnicodeError for other encodings."""
    lopsided = len(stored) > 1 and (stored[0] == 0) != (stored[1] == 0)  # UTF-16 without its mark
    if lopsided or stored.startswith(_OTHER_MARKS):
        raise UnicodeError("it is UTF-16 or UTF-32; expected UTF-8; save it as UTF-8")
    try:
        return stored.removeprefix(BYTE_ORDER_MARK).decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnicodeError(f"byte {error.start} is not UTF-8; save it as UTF-8") from None


def is_housekeeping(name: str) -> bool:
    """Whether desktops, notebooks or archivers leave a file or folder of this name beside the user's own."""
    return name.lower() in _HOUSEKEEPING or name.startswith("._")


def read_json(path: Path) -> Any:
    """Value of a JSON file; OSError or ValueError where it cannot be read, or names a key twice."""
    return parse_json(read_bytes(path, MOST_JSON))


def parse_json(text: str | bytes) -> Any:
    """Value of JSON; ValueError where it is none, is nested too deeply, or names a key twice."""
    try:
        return json.loads(text if isinstance(text, str) else decode(text), object_pairs_hook=_once)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Object with unique keys: of two values, one program would take the first and another the last."""
    entries: dict[str, Any] = {}
    for name, value in pairs:
        if name in entries:
            raise ValueError(f"key {name!r} stands twice in one object")
        entries[name] = value
    return entries


def read_yaml(path: Path, most: int) -> Any:
    """Return the value of a YAML file of at most `most` bytes; OSError or ValueError if it cannot be read."""
    try:
        return parse_yaml(read_text(path, most))
    except UnicodeError as error:
        raise ValueError(f"not YAML ({error})") from None


def parse_yaml(text: str) -> Any:
    """Return the value of YAML; ValueError if it is none, or has too many levels or aliases."""
    try:
        check_aliases(text)
        return yaml.load(text, Loader=yaml.CSafeLoader)  # ten times as fast as SafeLoader
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML ({' '.join(str(error).split())})") from None


def check_aliases(text: str) -> None:
    """Check levels and aliases (`*name`) before anything is built; ValueError, or YAMLError for no YAML.

    No alias may lie within what an anchor names: nested, some lines stand for billions.
    """
    anchors: list[bool] = []  # of the open collections
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            anchors.append(event.anchor is not None)
            if len(anchors) > _MOST_LEVELS:
                raise yaml.YAMLError("nested too deeply")
        elif isinstance(event, yaml.CollectionEndEvent):
            anchors.pop()
        elif isinstance(event, yaml.AliasEvent) and any(anchors):
            raise ValueError(f"its aliases are nested (*{event.anchor}); write them out")
