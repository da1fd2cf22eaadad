"""Text of a prompt with videos: what is a video, and that its caption says what those of its frames do."""

import pytest
from small_cohort import VIEWS, volume_row

from cardiolens.protocol.prompts.frames import (
    by_place,
    count_videos,
    frame_block,
    has_videos,
    shots,
)
from cardiolens.protocol.select.selection import Frame, pick
from cardiolens.storage import schemas, tables
from cardiolens.storage.schemas import FRAME
from cardiolens.study.structure import StudyStructure, structures


@pytest.fixture(scope="module")
def study() -> StudyStructure:
    rows = [
        volume_row("PH-0001", view, *shape) | {"part": "p", "row_group": 0} for view, shape in VIEWS.items()
    ]
    return structures(tables.from_rows(rows, schemas.VOLUMES))["PH-0001"]


def phases(study: StudyStructure, view: str, slice_rank: int, *numbers: int) -> list[Frame]:
    return [pick(study.volumes[view], slice_rank, phase) for phase in numbers]


def test_phases_of_a_slice_are_one_video_and_everything_else_stays_frames(study: StudyStructure) -> None:
    frames = [
        *phases(study, "cine_sax", 0, 0, 2, 4),
        *phases(study, "cine_sax", 1, 3),
        *phases(study, "cine_sax", 2, 0, 5),
        *phases(study, "cine_4ch", 0, 0, 1),
        *phases(study, "lge_sax", 0, 0),
        *phases(study, "lge_sax", 1, 0),
        *phases(study, "perf_sax", 1, 0, 1, 2),
        *phases(study, "t2_sax", 0, 0),
    ]
    assert [len(shot) for shot in shots(frames, study)] == [3, 1, 2, 2, 1, 1, 1, 1, 1, 1]
    assert frame_block(frames[:6], study, "view", as_video=True) == (
        "Frames 1 to 3, as a video: cine, short axis, slice 1 of 3 (base to apex), phases 1, 3, 5 of 6\n"
        f"{FRAME * 3}\n"
        f"Frame 4: cine, short axis, slice 2 of 3 (base to apex), phase 4 of 6\n{FRAME}\n"
        "Frames 5 to 6, as a video: cine, short axis, slice 3 of 3 (base to apex), phases 1, 6 of 6\n"
        f"{FRAME * 2}\n"
    )
    assert frame_block(frames[:3], study, "full", as_video=True) == (
        "Frames 1 to 3, as a video: cine, short axis, slice 1 of 3 (base to apex), basal level, phases "
        f"1 (end-diastole), 3 (end-systole), 5 of 6\n{FRAME * 3}\n"
    )
    assert (
        frame_block(frames[:3], study, "none", as_video=True) == f"Frames 1 to 3, as a video:\n{FRAME * 3}\n"
    )


def test_a_cycle_may_begin_anywhere_and_an_order_that_goes_back_ends_a_video(study: StudyStructure) -> None:
    def lengths(*numbers: int) -> list[int]:
        return [len(shot) for shot in shots(phases(study, "cine_sax", 1, *numbers), study)]

    assert lengths(4, 5, 0, 1) == [4]
    assert lengths(0, 2, 2, 3) == [2, 2], "a phase that is shown twice is no video of a cycle"
    assert lengths(0, 3, 1, 2) == [2, 2]


def test_marks_side_by_side_are_one_place() -> None:
    text = f"a{FRAME}\n{FRAME * 3}b{FRAME * 2}"
    assert by_place(text, "uvwxyz") == ["u", "vwx", "yz"]
    assert count_videos(text) == 2
    assert count_videos(f"{FRAME}\n{FRAME}") == 0
    assert by_place("no mark", "") == []
    assert (has_videos(["short", "video:2"]), has_videos(["short", "shots:2"])) == (True, False)
