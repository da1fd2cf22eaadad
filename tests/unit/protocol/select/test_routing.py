"""Missing views and sequences, substitution, fallback and flags (protocol 5.6)."""

import pytest
from selected import CLINICAL, RANDOM, SHAPES, SUBTASKS, study, views

from cardiolens.protocol.select.choose import choose
from cardiolens.protocol.select.selection import Selection
from cardiolens.study.structure import StudyStructure, VolumeStructure


def chosen(subtask: str, budget: int, structure: StudyStructure, selector=CLINICAL) -> Selection:
    seed = 2026 if selector.kind == "random" else None
    return choose(selector, seed, structure, SUBTASKS[subtask], budget)


@pytest.mark.parametrize("selector", [CLINICAL, RANDOM], ids=["clinical", "random"])
@pytest.mark.parametrize(
    ("subtask", "present", "flags", "shown"),
    [
        ("C01", ["cine_sax", "cine_4ch"], (), {"cine_sax", "cine_4ch"}),
        ("C01", ["cine_4ch", "cine_3ch"], ("degraded",), {"cine_4ch"}),
        ("C01", ["cine_3ch", "cine_2ch"], ("degraded", "substituted:cine_3ch"), {"cine_3ch"}),
        ("C16", ["cine_sax"], ("degraded", "substituted:cine_sax"), {"cine_sax"}),
        ("L01", ["lge_sax"], ("degraded",), {"lge_sax"}),
        ("L03", ["lge_2ch", "lge_4ch"], ("degraded", "substituted:lge_lax"), {"lge_2ch", "lge_4ch"}),
        ("T03", ["t2_4ch"], ("degraded", "substituted:t2_4ch"), {"t2_4ch"}),
        ("D01", ["t2_sax", "t2_4ch"], ("degraded",), {"t2_sax", "t2_4ch"}),
    ],
)
def test_what_is_shown_where_views_are_missing(selector, subtask, present, flags, shown):
    selection = chosen(subtask, 16, study(*present), selector)
    kept = tuple(flag for flag in selection.flags if flag not in ("short", "no_temporal_evidence"))
    assert kept == flags
    assert set(views(selection)) == shown


@pytest.mark.parametrize("selector", [CLINICAL, RANDOM], ids=["clinical", "random"])
@pytest.mark.parametrize(
    ("subtask", "present", "why"),
    [
        ("C04", ["cine_4ch", "cine_3ch", "lge_sax"], "view_missing"),
        ("C18", ["cine_sax", "cine_2ch"], "view_missing"),
        ("C01", ["lge_sax", "perf_sax"], "sequence_missing"),
        ("P02", ["cine_sax", "lge_sax"], "sequence_missing"),
        ("R-T2", ["cine_sax"], "sequence_missing"),
    ],
)
def test_what_cannot_be_read_is_skipped(selector, subtask, present, why):
    assert chosen(subtask, 16, study(*present), selector) == Selection((), skipped=why)


def test_quotas_of_a_diagnosis_follow_what_each_view_can_give():
    everything = study(*SHAPES)
    counted = views(chosen("D01", 16, everything))
    lge = counted.pop("lge_sax") + counted.pop("lge_4ch")
    assert lge == 4
    assert counted == {"cine_sax": 4, "cine_4ch": 2, "cine_3ch": 2, "perf_sax": 2, "t2_sax": 1, "t2_4ch": 1}
    counted = views(chosen("D01", 64, everything))
    assert sum(count for view, count in counted.items() if view.startswith("lge")) == 13
    assert counted["t2_sax"] + counted["t2_4ch"] == 6
    assert counted["cine_sax"] == 18 + 5 + 1


def test_both_views_of_t2_are_shown_by_their_weights():
    volumes = {f"t2_{view}": VolumeStructure(f"t2_{view}", "t2", view, 20, 1) for view in ("sax", "4ch")}
    assert views(chosen("D01", 10, StudyStructure("PH-0001", volumes))) == {"t2_sax": 7, "t2_4ch": 3}


def test_long_axes_fall_back_to_each_other_after_the_routed_views_are_used_up():
    selection = chosen("C17", 110, study("cine_4ch", "cine_3ch", "cine_2ch"))
    assert views(selection) == {"cine_4ch": 75, "cine_2ch": 25, "cine_3ch": 10}
    assert [frame.step for frame in selection.frames if frame.volume_id == "cine_3ch"] == [4] * 10
    assert selection.flags == ()


@pytest.mark.parametrize(("budget", "motion"), [(8, False), (10, False), (11, True), (64, True)])
def test_motion_questions_say_when_no_motion_is_shown(budget, motion):
    flags = chosen("C08", budget, study("cine_sax")).flags
    assert ("no_temporal_evidence" in flags) is not motion
    assert "no_temporal_evidence" not in chosen("C04", budget, study("cine_sax")).flags


def test_levels_are_not_guessed_where_the_slice_order_is_unknown():
    unknown = study("cine_sax", "cine_4ch", "lge_sax", levels_known=False)
    assert chosen("C06", 16, unknown) == Selection((), skipped="slice_order_unknown")
    assert chosen("C16", 16, unknown).skipped is None
    assert "levels_unknown" in chosen("L03", 4, unknown).flags
    assert "levels_unknown" in chosen("C06", 16, unknown, RANDOM).flags


def test_frames_are_shown_from_end_diastole_on_by_every_selector():
    volume = VolumeStructure("cine_3ch", "cine", "3ch", 1, 20, ed_phase=19, es_phase=6)
    structure = StudyStructure("PH-0001", {"cine_3ch": volume})
    for selector in (CLINICAL, RANDOM):
        phases = [frame.phase for frame in chosen("C18", 20, structure, selector).frames]
        assert phases == [19, *range(19)]
