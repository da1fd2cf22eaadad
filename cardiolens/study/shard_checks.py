"""Detect damaged but readable shards: rows of unknown volumes, frames of another volume."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cardiolens.base.errors import InputError
from cardiolens.study.anatomy import Anatomy
from cardiolens.study.sequences import CASE_IMAGES

REMEDY = "it was damaged or changed by hand: delete it and prepare again"
_MAY_BE_NULL = frozenset({"t_on", "t_peak"})
_NAMED = ("study_id", "volume_id", "idx")  # first columns of `frames`; parts store their ranges as statistics


def check_volumes(path: Path, rows: pa.Table, studies: Collection[str], anatomy: Anatomy) -> None:
    """Refuse rows of `volumes` that lack a study of the cohort, contain nulls, or name an unknown volume."""
    if absent := sorted(set(studies) - set(rows["study_id"].to_pylist())):
        raise InputError(f"{path}: holds no volume of study {absent[0]}, which cohort.json names; {REMEDY}")
    empty = [name for name in rows.schema.names if name not in _MAY_BE_NULL and rows[name].null_count]
    if empty:
        raise InputError(f"{path}: column {empty[0]} holds nulls; {REMEDY}")
    legal = {(name, volume) for name, kind in anatomy.sequences.items() for volume in kind.volume_ids}
    legal.add((CASE_IMAGES, CASE_IMAGES))
    for pair in zip(rows["sequence"].to_pylist(), rows["volume_id"].to_pylist(), strict=True):
        if pair not in legal:
            raise InputError(f"{path}: {pair[1]} is no volume of sequence {pair[0]}; {REMEDY}")
    if rows.num_rows and min(pc.min(rows[name]).as_py() for name in ("n_slices", "n_phases")) < 1:
        raise InputError(f"{path}: a volume has no frames; {REMEDY}")


def check_group(path: Path, part: pq.FileMetaData, place: Mapping[str, Any]) -> pq.RowGroupMetaData:
    """Return the row group of a volume; refuse one whose statistics are not of its frames. No frame is read.

    `place` is the volume's row: study_id, volume_id, n_slices, n_phases, row_group.
    """
    number, n_frames = place["row_group"], place["n_slices"] * place["n_phases"]
    if not 0 <= number < part.num_row_groups:
        raise InputError(f"{path}: has no row group {number} for {place['volume_id']}; {REMEDY}")
    group = part.row_group(number)
    statistics = [group.column(at).statistics for at in range(min(len(_NAMED), group.num_columns))]
    ranges = [
        (column.min, column.max) if column is not None and column.has_min_max else None
        for column in statistics
    ]
    study, volume = place["study_id"], place["volume_id"]
    if group.num_rows != n_frames or ranges != [(study, study), (volume, volume), (0, n_frames - 1)]:
        raise InputError(f"{path}: does not hold the {n_frames} frames of {volume} of {study}; {REMEDY}")
    return group
