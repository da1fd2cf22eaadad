"""Studies on their way from loader to replica arrive as they were sent, however blocks are cut and joined."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from cardiolens.inference.stream.loader import (
    STUDY_ASKS,
    PictureRow,
    StudyAsks,
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
