"""Studies on their way from loader to replica: several in a table, and as they were sent."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_cohort import make_cohort, reader, sweep_spec

from cardiolens.inference.models.token_counts import Rendering
from cardiolens.inference.plan.missing import missing
from cardiolens.inference.plan.plan import plan
from cardiolens.inference.stream import loader
from cardiolens.inference.stream.loader import (
    STUDY_ASKS,
    PictureRow,
    StudyAsks,
    StudyLoader,
    pictures_of,
    studies_of,
)

SIZES = st.tuples(st.integers(1, 5), st.integers(1, 7), st.sampled_from([1, 3]))


def study(name: str, sizes: list[tuple[int, int, int]]) -> StudyAsks:
    dice = np.random.default_rng(len(name))
    pictures: list[PictureRow] = [
        {
            "key": f"{name}-{n}",
            "height": height,
            "width": width,
            "channels": channels,
            "pixels": dice.integers(0, 256, height * width * channels, np.uint8).tobytes(),
        }
        for n, (height, width, channels) in enumerate(sizes)
    ]
    return {"study_id": name, "part": "", "asks": [], "pictures": pictures}


@given(st.lists(st.lists(SIZES, max_size=4), min_size=1, max_size=5), st.data())
def test_what_is_sent_arrives(cohort: list[list[tuple[int, int, int]]], data: st.DataObject) -> None:
    sent = [study("S" * (1 + n), sizes) for n, sizes in enumerate(cohort)]
    cut = data.draw(st.integers(0, len(sent)))
    block = pa.concat_tables(
        [
            pa.Table.from_pylist(sent[:cut], schema=STUDY_ASKS),
            pa.Table.from_pylist(sent[cut:], schema=STUDY_ASKS),
        ]
    )
    assert block.schema.equals(STUDY_ASKS)
    first = data.draw(st.integers(0, len(sent) - 1))
    if data.draw(st.booleans()):
        block = block.combine_chunks()
    arrived = studies_of(block.slice(first))
    for ours, theirs in zip(sent[first:], arrived, strict=True):
        assert theirs["study_id"] == ours["study_id"]
        shown, meant = pictures_of(theirs["pictures"]), pictures_of(ours["pictures"])
        for row in ours["pictures"]:
            assert np.array_equal(shown(row["key"]), meant(row["key"]))
        small = [{**row, "pixels": None} for row in theirs["pictures"]]
        assert small == [{**row, "pixels": None} for row in ours["pictures"]]


FULL = 5_000


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[pa.Table]:
    """What the loader makes of nine studies where a table takes no further study from FULL bytes on."""
    planned = plan(sweep_spec(make_cohort(tmp_path, 9), reader("constant", answer="A")))
    work = missing(planned.run.requests("constant"), tmp_path / "nothing", 1).work
    monkeypatch.setattr(loader, "TABLE_BYTES", FULL)
    return list(StudyLoader(planned.store.root, planned.volumes, Rendering(8))(work))


def size(study: StudyAsks) -> int:
    return sum(row["height"] * row["width"] * row["channels"] for row in study["pictures"])


def test_every_study_is_there_once_in_order(loaded: list[pa.Table]) -> None:
    ids = [study_id for table in loaded for study_id in table["study_id"].to_pylist()]
    assert ids == sorted(ids)
    assert len(ids) == len(set(ids)) == 9
    assert 1 < len(loaded) < 9


def test_a_table_is_full_and_holds_no_study_more(loaded: list[pa.Table]) -> None:
    for table in loaded[:-1]:
        *but_last, last = map(size, studies_of(table))
        assert sum(but_last) < FULL <= sum(but_last) + last
