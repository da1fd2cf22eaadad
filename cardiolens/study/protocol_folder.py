"""Protocol folders and their YAML data files.

`study` reads the anatomy of a protocol, and the packages above read its subtasks and templates.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cardiolens.base.errors import InputError
from cardiolens.base.paths import PACKAGE
from cardiolens.base.untrusted.yaml_file import read_yaml as read_bounded_yaml
from cardiolens.config.dataset import JOIN

DATA = PACKAGE / "protocol" / "tasks" / "data"
HEAD = "protocol.yaml"
MOST_BYTES = 16 << 20  # of a data file


def shipped() -> list[str]:
    """Return the names of the protocols that come with CardioLens, sorted."""
    return sorted(path.name for path in DATA.iterdir() if path.is_dir())


def protocol_folder(protocol: str) -> Path:
    """Return the folder of a shipped protocol, or the user's own folder; InputError if it is neither."""
    if protocol in shipped():
        return DATA / protocol
    if Path(protocol).is_dir():
        return Path(protocol)
    raise InputError(
        f"protocol {protocol!r} is neither shipped nor a folder; choose {' or '.join(shipped())}, or give a "
        "folder with a protocol.yaml"
    )


def protocols_of(protocol: str) -> tuple[str, ...]:
    """Return the protocols that are asked together, as in `openprotocol-1+authors-1`; else the one given."""
    if JOIN not in protocol or Path(protocol).is_dir():
        return (protocol,)
    names = tuple(protocol.split(JOIN))
    if len(set(names)) < len(names):
        raise InputError(f"protocol {protocol!r} names one protocol twice; name each once")
    return names


def lineage(protocol: str) -> tuple[Path, ...]:
    """Return the folder of a protocol and those that it inherits from; of joined ones, one after another."""
    return tuple(dict.fromkeys(folder for name in protocols_of(protocol) for folder in _lineage(name)))


def _lineage(protocol: str) -> Iterator[Path]:
    folder = protocol_folder(protocol)
    yield folder
    parent = read_yaml(folder / HEAD).get("inherits") if (folder / HEAD).exists() else None
    if parent is None:
        return
    if parent not in shipped() or DATA / str(parent) == folder:
        raise InputError(
            f"{folder / HEAD}: inherits {parent!r}; expected another protocol of {', '.join(shipped())}"
        )
    yield from _lineage(parent)


def read_yaml(path: Path) -> dict[str, Any]:
    """Read the mapping in a data file; InputError names the file and the mistake."""
    try:
        tree = read_bounded_yaml(path, MOST_BYTES)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); a protocol folder needs it") from None
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None
    if not isinstance(tree, dict):
        raise InputError(f"{path}: must hold keys and values at its top, found {type(tree).__name__}")
    return tree
