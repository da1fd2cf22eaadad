"""Pieces of few studies: each request once, cut where little is shared; many studies, and chains, whole."""

from pathlib import Path

import pyarrow as pa
import pytest

from cardiolens.inference.plan.missing import missing
from cardiolens.inference.stream.study_pieces import FEW, divided, most_waiting
from cardiolens.storage import tables
from cardiolens.storage.schemas import PLANNED, REQUESTS

REPLICAS = 8
GROUPS, QUESTIONS = 10, 6  # beginnings of a study, and requests with each


def work(folder: Path, studies: int, stage: int = 0) -> pa.Table:
    """Requests of studies in groups that share eight frames each, in an order that mixes the groups."""
    rows = [
        {
            "frames_study_id": f"S{study}",
            "system": "s",
            "flags": [],
            "frames": [{"volume_id": f"v{group}", "idx": idx} for idx in range(8)],
            "status": PLANNED,
            "request_key": f"{study} {group} {question}",
            "stage": stage,
        }
        for study in range(studies)
        for question in range(QUESTIONS)
        for group in range(GROUPS)
    ]
    tables.write_part(folder / "requests", tables.from_rows(rows, REQUESTS), REQUESTS, "part-00000.parquet")
    return missing(folder / "requests", folder / "completions", 1).work


def requests(table: pa.Table) -> list[tuple[str, int, int]]:
    return sorted(
        (row["study_id"], number, attempt)
        for row in table.to_pylist()
        for number, attempt in zip(row["rows"], row["attempts"], strict=True)
    )


def test_few_studies_are_divided_and_no_request_is_lost_or_asked_twice(tmp_path: Path) -> None:
    whole = work(tmp_path, 10)
    pieces = divided(whole, REPLICAS)
    assert pieces.schema.equals(whole.schema)
    assert requests(pieces) == requests(whole)
    assert pieces.num_rows >= 4 * REPLICAS
    lengths = [len(row) for row in pieces["rows"].to_pylist()]
    assert lengths == sorted(lengths, reverse=True), "the costliest first: what is left at the end is small"


def test_requests_that_begin_with_the_same_frames_stay_together(tmp_path: Path) -> None:
    shown = tables.read_part(Path(work(tmp_path, 10)["part"][0].as_py()), REQUESTS, ("frames",))["frames"]
    volumes = [frames[0]["volume_id"] for frames in shown.to_pylist()]
    pieces = divided(missing(tmp_path / "requests", tmp_path / "completions", 1).work, REPLICAS)
    places = [(row["study_id"], volumes[number]) for row in pieces.to_pylist() for number in set(row["rows"])]
    together = {(row["study_id"], volumes[number]) for row in pieces.to_pylist() for number in row["rows"]}
    per_piece = [{volumes[number] for number in row["rows"]} for row in pieces.to_pylist()]
    assert sum(map(len, per_piece)) == len(together) == 10 * GROUPS, "no group is in two pieces"
    assert len(places) == 10 * GROUPS * QUESTIONS


@pytest.mark.parametrize(("studies", "replicas", "stage"), [(10, 1, 0), (FEW * 2, 2, 0), (10, REPLICAS, 1)])
def test_one_replica_many_studies_and_chains_are_left_whole(
    tmp_path: Path, studies: int, replicas: int, stage: int
) -> None:
    whole = work(tmp_path, studies, stage)
    assert sorted(map(len, divided(whole, replicas)["rows"].to_pylist())) == [GROUPS * QUESTIONS] * studies


def test_a_replica_holds_a_quarter_of_its_part(tmp_path: Path) -> None:
    whole = work(tmp_path, 64)
    assert [most_waiting(whole, replicas, 60) for replicas in (1, 2, 4, 64)] == [64, 8, 4, 2]


def test_a_replica_holds_small_studies_that_fill_its_engine_together(tmp_path: Path) -> None:
    requests = GROUPS * QUESTIONS
    assert [most_waiting(work(tmp_path, 64), 8, width) for width in (1, 10 * requests)] == [2, 10]
