"""Numbers for the names in a table of verdicts that mean the same in every part of it."""

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The distinct questions of a table, and of its reports the counts, the entities and sets of them."""

    questions: pa.Array
    counts: frozenset[str]
    entities: tuple[str, ...]  # sorted
    sets: pa.Array  # of entities that one report names, joined

    @staticmethod
    def of(verdicts: pa.Table) -> "Vocabulary":
        """The vocabulary of a whole table."""
        columns = verdicts.select(["channel", "parsed", "gold", "counts"])
        reports = columns.filter(pc.not_equal(columns["channel"], "answer")).combine_chunks()
        named = (pc.unique(pc.list_flatten(reports[name])).to_pylist() for name in ("gold", "parsed"))
        return Vocabulary(
            questions=pc.unique(verdicts["qa_id"]),
            counts=frozenset(pc.unique(reports["counts"].combine_chunks().keys).to_pylist()),
            entities=tuple(sorted({name for names in named for name in names})),
            sets=pc.unique(joined(reports["parsed"])),
        )


def joined(lists: pa.ChunkedArray) -> pa.ChunkedArray:
    """One string for each list of strings; null is the empty one."""
    return pc.fill_null(pc.binary_join(lists, "\n"), "")


def number_in(column: pa.ChunkedArray, known: pa.Array) -> Ints:
    """The place of each string among those known."""
    return np.asarray(pc.index_in(column, value_set=known), np.int64)


def number_of(column: pa.ChunkedArray) -> Ints:
    """A number for each string that depends on nothing else; null is the empty one.

    The keys of millions of requests are too many to be held together. Only two replies to one question are
    ever compared by it, so that 63 bits suffice.
    """
    return np.fromiter(
        (
            int.from_bytes(blake2b((key or "").encode(), digest_size=8).digest(), "little") >> 1
            for key in column.to_pylist()
        ),
        np.int64,
        len(column),
    )
