"""Integer codes for the names in verdicts, shared by all parts of a table."""

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cardiolens.score.statistics.verdict_rows import Verdicts, blocks

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The distinct questions of verdicts, and of their reports the counts and the entities."""

    questions: pa.Array
    counts: frozenset[str]
    entities: tuple[str, ...]  # sorted

    @staticmethod
    def of(verdicts: pa.Table | Verdicts) -> "Vocabulary":
        """Collect the vocabulary of a table of verdicts."""
        questions = pa.array([], pa.string())
        counts: set[str] = set()
        entities: set[str] = set()
        for columns in blocks(verdicts, ["qa_id", "channel", "parsed", "gold", "counts"]):
            questions = pc.unique(pa.concat_arrays([questions, pc.unique(columns["qa_id"])]))
            reports = columns.filter(
                pc.is_in(columns["channel"], pa.array(["fields", "text"]))
            ).combine_chunks()
            counts.update(pc.unique(reports["counts"].combine_chunks().keys).to_pylist())
            for name in ("gold", "parsed"):
                entities.update(pc.unique(pc.list_flatten(reports[name])).to_pylist())
        return Vocabulary(questions, frozenset(counts), tuple(sorted(entities)))


def join_lists(lists: pa.ChunkedArray) -> pa.ChunkedArray:
    """One string for each list of strings; null is the empty one."""
    return pc.fill_null(pc.binary_join(lists, "\n"), "")


def number_in(column: pa.ChunkedArray, names: pa.Array) -> Ints:
    """The index of each string in `names`."""
    return np.asarray(pc.index_in(column, value_set=names), np.int64)


def number_of(column: pa.ChunkedArray) -> Ints:
    """Hash each string to a 63-bit number; null hashes like the empty string.

    The keys of millions of requests do not fit in memory at once. Only replies to the same question are ever
    compared by it, so 63 bits suffice.
    """
    return np.fromiter(
        (
            int.from_bytes(blake2b((key or "").encode(), digest_size=8).digest(), "little") >> 1
            for key in column.to_pylist()
        ),
        np.int64,
        len(column),
    )
