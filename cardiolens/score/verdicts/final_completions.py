"""Final completions: the one per request that counts, and the number of surplus ones."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.storage.schemas import FINAL

_FINAL = pa.array(FINAL)


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Numbers of surplus final completions, by whether they agree with the one that counts."""

    agreeing: int
    disagreeing: int


def finals(completions: pa.Table) -> pa.Table:
    """The final completion per request_key that counts: the earliest by (written_at, position)."""
    ordered, first, _ = _first_of_each_key(completions)
    return ordered.take(np.sort(first))


def duplicates(completions: pa.Table) -> Duplicates:
    """Count surplus final completions of each key; they agree if status and text equal the first."""
    ordered, first, key = _first_of_each_key(completions)
    content = pc.binary_join_element_wise(ordered["status"], pc.fill_null(ordered["text"], ""), "\x1f")
    code = _codes(content)
    agreeing = int(np.count_nonzero(code == code[first][key])) - len(first)
    return Duplicates(agreeing, len(key) - len(first) - agreeing)


def _first_of_each_key(completions: pa.Table) -> tuple[pa.Table, np.ndarray, np.ndarray]:
    """Final completions in order of time, the first row of each key, and the key number of each row."""
    final = completions.filter(pc.is_in(completions["status"], value_set=_FINAL))
    ordered = final.take(pc.sort_indices(final, sort_keys=[("written_at", "ascending")]))
    _, first, key = np.unique(_codes(ordered["request_key"]), return_index=True, return_inverse=True)
    return ordered, first, key


def _codes(column: pa.ChunkedArray) -> np.ndarray:
    encoded: pa.DictionaryArray = column.combine_chunks().dictionary_encode()
    return np.asarray(encoded.indices)
