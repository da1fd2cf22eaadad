"""A budget in visual tokens buys as many frames as fit."""

import pytest

from cardiolens.config.sweep_factors import SelectorSpec
from cardiolens.protocol.select.choose import choose, fitting
from cardiolens.protocol.select.route import Route
from cardiolens.protocol.select.selection import Selection
from cardiolens.study.structure import StudyStructure, VolumeStructure

STUDY = StudyStructure("PH-0001", {"cine_sax": VolumeStructure("cine_sax", "cine", "sax", 10, 25, 0, 9)})
ROUTE = Route("C08", "cine", (("cine_sax", 1),))
CLINICAL = SelectorSpec(name="clinical", kind="clinical")


def chosen(budget: int) -> Selection:
    return choose(CLINICAL, None, STUDY, ROUTE, budget)


@pytest.mark.parametrize(("limit", "frames"), [(255, 0), (256, 1), (4096, 16), (4351, 16), (1_000_000, 250)])
def test_as_many_frames_as_fit(limit, frames):
    selection = fitting(chosen, lambda frame: 256, limit, 250)
    assert len(selection.frames) == frames
    assert (selection.skipped == "frame_over_budget") is (frames == 0)


def test_frames_may_cost_differently():
    selection = fitting(chosen, lambda frame: 100 if frame.slice < 5 else 300, 4000, 250)
    assert sum(100 if frame.slice < 5 else 300 for frame in selection.frames) <= 4000
    more = chosen(len(selection.frames) + 1)
    assert sum(100 if frame.slice < 5 else 300 for frame in more.frames) > 4000
