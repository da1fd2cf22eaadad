"""Every vector of sections 5 and 6 of the protocol, to the frame, and budgets in tokens."""

import pytest
from selected import CLINICAL, RANDOM, SUBTASKS

from cardiolens.protocol.select.choose import choose, fitting
from cardiolens.protocol.select.clinical import settle, split
from cardiolens.protocol.select.selection import Selection
from cardiolens.protocol.tasks.catalogue import Subtask
from cardiolens.study.structure import StudyStructure, VolumeStructure, even

SAX = VolumeStructure("cine_sax", "cine", "sax", 10, 25, ed_phase=0, es_phase=9, key_layers=(1, 5, 8))
FOUR = VolumeStructure("cine_4ch", "cine", "4ch", 3, 25, ed_phase=0, es_phase=9)
PERF = VolumeStructure("perf_sax", "perfusion", "sax", 3, 50, key_layers=(0, 1, 2), t_on=8, t_peak=15)


def lge(view: str, n: int) -> VolumeStructure:
    return VolumeStructure(f"lge_{view}", "lge", view, n, 1)


def chosen(subtask: str, budget: int, *volumes: VolumeStructure) -> Selection:
    study = StudyStructure("PH-0001", {volume.volume_id: volume for volume in volumes})
    return choose(CLINICAL, None, study, SUBTASKS[subtask], budget)


def drawn(subtask: str, budget: int, *volumes: VolumeStructure) -> Selection:
    study = StudyStructure("PH-0001", {volume.volume_id: volume for volume in volumes})
    return choose(RANDOM, 2026, study, SUBTASKS[subtask], budget)


def shown(selection: Selection, view: str) -> list[str]:
    return [f"{frame.slice}/{frame.phase}" for frame in selection.frames if frame.volume_id == view]


def ordered(text: str) -> list[str]:
    return sorted(text.split(), key=lambda frame: tuple(map(int, frame.split("/"))))


@pytest.mark.parametrize(
    ("n", "m", "expected"),
    [
        (10, 4, [1, 3, 6, 8]),
        (10, 8, [0, 1, 3, 4, 5, 6, 8, 9]),
        (5, 1, [2]),
        (3, 3, [0, 1, 2]),
        (10, 3, [1, 5, 8]),
    ],
)
def test_even(n, m, expected):
    assert list(even(n, m)) == expected


@pytest.mark.parametrize(
    ("budget", "weights", "expected"),
    [
        (16, [3, 1], [12, 4]),
        (1, [3, 1], [1, 0]),
        (2, [1, 1, 5], [1, 1, 0]),
        (8, [30, 12, 8, 30, 10, 10], [2, 1, 1, 2, 1, 1]),
        (64, [30, 12, 8, 30, 10, 10], [18, 8, 6, 18, 7, 7]),
        (5, [1, 1], [3, 2]),
    ],
)
def test_split(budget, weights, expected):
    assert split(budget, weights) == expected


ED_FRAMES = " ".join(f"{rank}/0" for rank in range(10))
CYCLE = " ".join(f"{rank}/{phase}" for rank in (1, 5, 8) for phase in range(1, 25))


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (4, "1/0 3/0 6/0 8/0"),
        (10, ED_FRAMES),
        (16, f"{ED_FRAMES} 1/7 1/19 5/7 5/19 8/7 8/19"),
        (
            32,
            f"{ED_FRAMES} "
            + " ".join(f"{rank}/{phase}" for rank in (1, 8) for phase in (2, 6, 9, 13, 16, 19, 23))
            + " "
            + " ".join(f"5/{phase}" for phase in (2, 5, 8, 11, 14, 17, 20, 23)),
        ),
        (
            96,
            f"{ED_FRAMES} {CYCLE} 0/7 0/19 2/8 2/20 3/10 3/22 4/12 4/24 6/13 6/1 7/15 7/3 9/17 9/5",
        ),
    ],
)
def test_cine_short_axis(budget, expected):
    selection = chosen("C08", budget, SAX, FOUR)
    assert shown(selection, "cine_sax") == ordered(expected)
    assert len(selection.frames) == budget


def test_one_frame_more_shows_systole():
    assert shown(chosen("C08", 11, SAX), "cine_sax") == ordered(f"{ED_FRAMES} 5/9")


def test_cine_short_axis_falls_back_to_the_four_chamber_view():
    selection = chosen("C08", 260, SAX, FOUR)
    assert len(shown(selection, "cine_sax")) == 250
    assert shown(selection, "cine_4ch") == [f"1/{phase}" for phase in (1, 3, 6, 8, 11, 13, 16, 18, 21, 23)]
    assert {frame.step for frame in selection.frames} == {1, 2, 3, 4}
    selection = chosen("C08", 400, SAX, FOUR)
    assert len(selection.frames) == 325
    assert "short" in selection.flags


@pytest.mark.parametrize(
    ("budget", "phases"),
    [
        (1, [0]),
        (3, [0, 9, 13]),
        (8, [0, 2, 6, 9, 11, 15, 19, 23]),
    ],
)
def test_long_axis_small_budgets_put_time_first(budget, phases):
    stack = VolumeStructure("cine_3ch", "cine", "3ch", 8, 25, ed_phase=0, es_phase=9)
    assert shown(chosen("C18", budget, stack), "cine_3ch") == [f"4/{phase}" for phase in phases]


def test_lge():
    ones = [lge("4ch", 1), lge("2ch", 1), lge("3ch", 1)]
    selection = chosen("L01", 8, lge("sax", 10), *ones)
    assert shown(selection, "lge_sax") == [f"{rank}/0" for rank in (0, 2, 4, 5, 7, 9)]
    assert [frame.volume_id for frame in selection.frames[6:]] == ["lge_4ch", "lge_2ch"]
    selection = chosen("L01", 12, lge("sax", 10), *ones)
    assert shown(selection, "lge_sax") == [f"{rank}/0" for rank in (0, 1, 2, 3, 5, 6, 7, 8, 9)]
    assert [frame.volume_id for frame in selection.frames[9:]] == ["lge_4ch", "lge_2ch", "lge_3ch"]
    threes = [lge("4ch", 3), lge("2ch", 3), lge("3ch", 3)]
    selection = chosen("L01", 16, lge("sax", 10), *threes)
    assert len(shown(selection, "lge_sax")) == 10
    assert {view: shown(selection, view) for view in ("lge_4ch", "lge_2ch", "lge_3ch")} == {
        "lge_4ch": ["0/0", "1/0"],
        "lge_2ch": ["0/0", "1/0"],
        "lge_3ch": ["0/0", "1/0"],
    }


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (2, "0/21 2/21"),
        (8, "0/21 1/21 2/21 1/12 1/23 0/12 0/23 2/17"),
        (
            16,
            "0/21 1/21 2/21 1/9 1/13 1/17 1/22 1/26 0/10 0/15 0/19 0/25 2/10 2/15 2/19 2/25",
        ),
    ],
)
def test_perfusion(budget, expected):
    assert shown(chosen("P01", budget, PERF), "perf_sax") == ordered(expected)


def test_random():
    ranks = {4: [54, 82, 91, 181], 8: [54, 81, 82, 91, 102, 109, 181, 222]}
    for budget, expected in ranks.items():
        assert [frame.idx for frame in drawn("C08", budget, SAX).frames] == expected
    selection = drawn("L01", 5, lge("sax", 10), lge("4ch", 1))
    assert [(frame.volume_id, frame.idx) for frame in selection.frames] == [
        ("lge_sax", 3),
        ("lge_sax", 5),
        ("lge_sax", 6),
        ("lge_sax", 7),
        ("lge_4ch", 0),
    ]


def test_what_a_view_cannot_fill_goes_to_the_others_in_listed_order():
    assert settle([6, 2, 4], [3, 4, 10]) == [3, 4, 5]
    assert settle([6, 2], [3, 3]) == [3, 3]


@pytest.mark.parametrize(
    ("budget", "expected"),
    [(4, "1/0 0/0 2/0 1/9"), (8, "1/0 0/0 2/0 1/9 1/3 1/10 1/16 1/22")],
)
def test_long_axis_large_budgets(budget, expected):
    three = VolumeStructure("cine_3ch", "cine", "3ch", 3, 25, ed_phase=0, es_phase=9)
    assert shown(chosen("C18", budget, three), "cine_3ch") == ordered(expected)


def test_lge_exhausted_and_short_axis_only():
    volumes = (lge("sax", 10), lge("4ch", 1))
    everything = chosen("L01", 16, *volumes)
    assert [frame.volume_id for frame in everything.frames] == ["lge_sax"] * 10 + ["lge_4ch"]
    assert everything.flags == ("short",)
    assert shown(chosen("L03", 4, *volumes), "lge_sax") == ["1/0", "3/0", "6/0", "8/0"]
    assert len(chosen("L03", 64, *volumes).frames) == 10


STACK = StudyStructure("PH-0001", {"cine_sax": VolumeStructure("cine_sax", "cine", "sax", 10, 25, 0, 9)})
SUBTASK = Subtask("C08", 1, "cine", "", "", "single", (("cine_sax", 1),), "")


def at_most(budget: int) -> Selection:
    return choose(CLINICAL, None, STACK, SUBTASK, budget)


@pytest.mark.parametrize(("limit", "frames"), [(255, 0), (256, 1), (4096, 16), (4351, 16), (1_000_000, 250)])
def test_as_many_frames_as_fit(limit, frames):
    selection = fitting(at_most, lambda frame: 256, limit, 250)
    assert len(selection.frames) == frames
    assert (selection.skipped == "frame_over_budget") is (frames == 0)


def test_frames_may_cost_differently():
    selection = fitting(at_most, lambda frame: 100 if frame.slice < 5 else 300, 4000, 250)
    assert sum(100 if frame.slice < 5 else 300 for frame in selection.frames) <= 4000
    more = at_most(len(selection.frames) + 1)
    assert sum(100 if frame.slice < 5 else 300 for frame in more.frames) > 4000
