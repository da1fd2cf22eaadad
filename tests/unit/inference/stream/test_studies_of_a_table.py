"""Small studies leave the loader several in a table, in order, and never more than a table may hold."""

from pathlib import Path

import pyarrow as pa
import pytest
from small_cohort import make_cohort, reader, sweep_spec

from cardiolens.inference.models.token_counts import Rendering
from cardiolens.inference.plan.missing import missing
from cardiolens.inference.plan.plan import plan
from cardiolens.inference.stream import loader
from cardiolens.inference.stream.loader import StudyAsks, StudyLoader, studies_of

FULL = 5_000


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[pa.Table]:
    """What the loader makes of nine studies where a table takes no further study from FULL bytes on."""
    planned = plan(sweep_spec(make_cohort(tmp_path, 9), reader("constant", answer="A")))
    work = missing(planned.run.requests("constant"), tmp_path / "nothing", 1).work
    monkeypatch.setattr(loader, "TABLE_BYTES", FULL)
    return list(StudyLoader(planned.store.root, planned.volumes, Rendering(8))(work))


def size(study: StudyAsks) -> int:
    return sum(row["height"] * row["width"] * row["channels"] for row in study["pictures"])


def test_every_study_is_there_once_in_order(tables: list[pa.Table]) -> None:
    ids = [study_id for table in tables for study_id in table["study_id"].to_pylist()]
    assert ids == sorted(ids)
    assert len(ids) == len(set(ids)) == 9
    assert 1 < len(tables) < 9


def test_a_table_is_full_and_holds_no_study_more(tables: list[pa.Table]) -> None:
    for table in tables[:-1]:
        *but_last, last = map(size, studies_of(table))
        assert sum(but_last) < FULL <= sum(but_last) + last
