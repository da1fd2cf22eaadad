"""Count the requests, frames and tokens of one model from its written plan."""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.storage import schemas, tables
from cardiolens.storage.schemas import OVERFLOW, PLANNED


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts over the requests of one model; every stage of a chain counts the tokens of its last stage."""

    asked: int
    overflow: int
    skipped: int
    frames_referenced: int  # by distinct planned requests
    frames_distinct: int
    sent: int  # distinct planned requests, counting every stage of a chain: an upper bound
    prompt_tokens: int | None  # of the sent requests; None if the reader has no tokens
    output_tokens: int  # upper bound for the replies to the sent requests


def totals_of(requests: Path) -> Totals:
    """Count the plan of one model part by part; counts add up because each study lies in a single part."""
    sums = dict.fromkeys(
        ("asked", "overflow", "skipped", "frames_referenced", "frames_distinct", "sent", "output_tokens"), 0
    )
    tokens: int | None = None
    for part in tables.parts(requests):
        columns = (
            "frames_study_id",
            "frames",
            "max_tokens",
            "stage",
            "status",
            "predicted_tokens",
            "request_key",
        )
        table = tables.read_part(part, schemas.REQUESTS, columns)
        planned = table.filter(pc.equal(table["status"], PLANNED))
        overflow = pc.sum(pc.equal(table["status"], OVERFLOW)).as_py() or 0
        sums["asked"] += table.num_rows
        sums["overflow"] += overflow
        sums["skipped"] += table.num_rows - planned.num_rows - overflow
        unique = _first_of_each_key(planned)
        referenced, distinct = _frames(unique)
        sums["frames_referenced"] += referenced
        sums["frames_distinct"] += distinct
        stages = pc.add(unique["stage"], 1)
        sums["sent"] += pc.sum(stages).as_py() or 0
        sums["output_tokens"] += pc.sum(pc.multiply(unique["max_tokens"], stages)).as_py() or 0
        counted = pc.sum(pc.multiply(unique["predicted_tokens"], stages)).as_py()
        tokens = tokens if counted is None else (tokens or 0) + counted
    return Totals(**sums, prompt_tokens=tokens)


def _first_of_each_key(table: pa.Table) -> pa.Table:
    keyed = table.select(["request_key"]).append_column("row", pa.array(range(table.num_rows)))
    first = keyed.group_by("request_key").aggregate([("row", "min")])["row_min"]
    return table.take(first)


def _frames(requests: pa.Table) -> tuple[int, int]:
    lists = requests["frames"].combine_chunks()
    flat = lists.flatten()
    parents = pc.list_parent_indices(lists)
    places = pa.table(
        {
            "study": requests["frames_study_id"].take(parents),
            "volume": flat.field("volume_id"),
            "idx": flat.field("idx"),
        }
    )
    return places.num_rows, places.group_by(["study", "volume", "idx"]).aggregate([]).num_rows
