"""A verb under test: what it starts from, how it is run, and what must be equal at the end."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

# Times, nodes and counts of attempts, of which two runs have different ones.
_VOLATILE_COLUMNS = frozenset({"written_at", "seconds", "node", "attempt", "cached_tokens"})
_LOGS = (".log", ".lock", ".html", ".js", ".css", ".pt")

_PART = re.compile(r"part-\d{20}-[0-9a-f]{8}")  # names of parts, drawn anew in every run

State = dict[str, Any]
Meanwhile = Callable[[int, Path], int]
"""Called with the process and its folder while a server runs; returns how many decisions it acknowledged."""


@dataclass(frozen=True, slots=True)
class Verb:
    """A command line that changes the disk."""

    name: str
    run: Callable[[], int]  # in the folder, in a process of its own
    compared: tuple[str, ...]  # globs of what must be equal at the end
    base: tuple[str, ...] = ()  # globs of what the verb starts from, in the folder that all verbs share
    volatile: frozenset[str] = frozenset()  # keys of JSON that two runs have different ones of
    made_before: Callable[[], int] | None = None  # what is done in a fresh folder before the verb
    meanwhile: Meanwhile | None = None
    decisions: int = 0  # that a server is sent in all
    asks: Callable[[], Counter[str]] | None = (
        None  # calls of a server by their content, since it was asked last
    )
    asked_twice_at_most: int = 0  # calls in flight, or answered and not on disk yet
    acknowledged: str = ""  # glob of tables whose rows may not go again
    ends_with: int = 0  # exit code of the undisturbed command
    done_before: int = 0  # exit code of the same command where everything is done already


def state_of(place: Path, verb: Verb) -> State:
    """What must be equal: rows of tables by folder, lines and documents without what is volatile, bytes."""
    state: State = {}
    files = sorted({path for glob in verb.compared for path in place.glob(glob) if path.is_file()})
    for path in files:
        name = path.relative_to(place)
        if _is_unnamed_part(path):
            continue
        if path.suffix == ".parquet":
            state.setdefault(str(name.parent), []).extend(_rows(path))
        elif path.suffix in (".json", ".jsonl"):
            documents = [_without(json.loads(line), verb.volatile) for line in _documents(path)]
            # People come in another order after a fault; that of the lines of each is in their content.
            state[str(name)] = documents if verb.meanwhile is None else sorted(documents, key=json.dumps)
        elif path.suffix not in _LOGS and not path.name.startswith("."):
            state[str(name)] = path.read_bytes()
        elif path.suffix == ".html":
            state[str(name)] = "there"
    return {name: sorted(rows) if _is_rows(rows) else rows for name, rows in state.items()}


def rows_of(place: Path, glob: str) -> Counter[str]:
    """Rows of tables, each as text."""
    return Counter(row for path in place.glob(glob) for row in _rows(path)) if glob else Counter()


def unequal(first: State, second: State) -> list[str]:
    """Names of files and folders of tables that differ."""
    return sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))


def _is_unnamed_part(path: Path) -> bool:
    """Return whether the cohort does not name a part: nobody reads it, and `store prune` removes it."""
    cohort = path.parents[1] / "cohort.json"
    return path.parent.name in ("frames", "volumes") and path.name not in cohort.read_text("utf-8")


def _rows(path: Path) -> list[str]:
    table = pq.read_table(path, partitioning=None)
    kept = [name for name in table.column_names if name not in _VOLATILE_COLUMNS]
    return [_PART.sub("part", repr(row)) for row in table.select(kept).to_pylist()]


def _is_rows(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], str)


def _documents(path: Path) -> Iterable[str]:
    text = _PART.sub("part", path.read_text(encoding="utf-8"))
    return text.splitlines() if path.suffix == ".jsonl" else [text]


def _without(value: Any, volatile: frozenset[str]) -> Any:
    if isinstance(value, Mapping):
        return {name: _without(inner, volatile) for name, inner in value.items() if name not in volatile}
    return [_without(inner, volatile) for inner in value] if isinstance(value, list) else value
