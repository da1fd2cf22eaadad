from dataclasses import replace

import pytest

from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.protocol.tasks.instantiate import answer, answerable_subtasks
from cardiolens.protocol.tasks.segments import SEGMENTS
from cardiolens.protocol.tasks.truth import (
    Details,
    Lesion,
    PerfusionDefect,
    Segment,
    Truth,
    defect_distribution,
    findings,
    motion_distribution,
    oedema_distribution,
    wall_distribution,
)

SEQUENCES = ("cine", "lge", "perfusion", "t2")


@pytest.fixture(scope="module")
def catalogue():
    return load_catalogue("openprotocol-1")


def with_segments(**changes):
    """A truth with some segments changed: s7={'motion': 'akinesia'}."""
    segments = [replace(Segment(), **changes.get(f"s{number}", {})) for number in SEGMENTS]
    return Truth(segments=tuple(segments))


@pytest.mark.parametrize(
    ("distribution", "affected", "expected"),
    [
        (wall_distribution, range(1, 13), "diffuse"),
        (wall_distribution, range(1, 12), "regional"),
        (wall_distribution, {13, 14, 17}, "apical"),
        (wall_distribution, {2, 8}, "focal"),
        (wall_distribution, {2, 8, 14}, "regional"),
        (motion_distribution, range(1, 13), "global"),
        (motion_distribution, {7, 8, 17}, "one_territory"),
        (motion_distribution, {4, 5}, "several_territories"),
        (defect_distribution, PerfusionDefect(tuple(range(1, 11)), 0.5), "circumferential"),
        (defect_distribution, PerfusionDefect(tuple(range(1, 11)), 0.9), "non_territorial"),
        (defect_distribution, PerfusionDefect((4, 10, 15), 0.6), "subendocardial_territory"),
        (defect_distribution, PerfusionDefect((4, 10, 15), 0.8), "transmural_territory"),
        (oedema_distribution, [Lesion(tuple(range(1, 13)))], "diffuse"),
        (oedema_distribution, [Lesion((5, 11), pattern="patchy")], "patchy"),
        (oedema_distribution, [Lesion((5,)), Lesion((6,))], "patchy"),
        (oedema_distribution, [Lesion((7, 8, 13))], "segmental"),
        (oedema_distribution, [Lesion((7, 8))], "focal"),
        (oedema_distribution, [Lesion((2, 3, 4))], "patchy"),
    ],
)
def test_the_distribution_of_what_is_abnormal(distribution, affected, expected):
    assert distribution(affected) == expected


def test_the_worst_grade_and_all_thickness_classes_count(catalogue):
    truth = with_segments(
        s1={"motion": "hypokinesia", "thickness": "thinned"},
        s17={"motion": "dyskinesia", "bulging": True},
    )
    found = findings(truth)
    assert answer(catalogue["C06"], found) == ("D",)
    assert answer(catalogue["C07"], found) == ("A", "D")
    assert answer(catalogue["C08"], found) == ("A",)
    assert answer(catalogue["C02"], found) == ("B", "D")
    assert answer(catalogue["C03"], found) == ("A", "D")


def test_a_normal_study_has_sixteen_questions_and_all_first_answers(catalogue):
    found = findings(Truth())
    tier_1 = [subtask for subtask in answerable_subtasks(catalogue, found, SEQUENCES) if subtask.tier == 1]
    assert len(tier_1) == 16
    assert {answer(subtask, found) for subtask in tier_1} == {("A",)}
    assert "D02" not in {subtask.id for subtask in answerable_subtasks(catalogue, found, SEQUENCES)}


def test_an_apical_cap_alone_opens_no_question_about_walls(catalogue):
    ids = {
        one.id
        for one in answerable_subtasks(
            catalogue, findings(with_segments(s17={"motion": "akinesia"})), SEQUENCES
        )
    }
    assert {"C06", "C07", "C09"} <= ids
    assert "C08" not in ids


def test_right_ventricular_enhancement_alone_has_no_level_and_no_layer(catalogue):
    found = findings(Truth(lge=(Lesion(rv_free_wall=True),)))
    ids = {subtask.id for subtask in answerable_subtasks(catalogue, found, SEQUENCES)}
    assert {"L01", "L03", "L04"} <= ids
    assert not {"L02", "L05"} & ids
    assert answer(catalogue["L03"], found) == ("E",)
    assert found["lge.special_description"] == ("right_ventricle",)
    assert found["lge.enhancement_status"] == ("abnormal",)


def authors(truth, prefix):
    return {name: set(values) for name, values in findings(truth).items() if name.startswith(prefix)}


def test_places_of_a_lesion_under_the_names_of_the_authors():
    """Two segments of the apical level lie in two of the six walls each."""
    truth = Truth(lge=(Lesion((8, 14), "transmural"), Lesion((4,), "mid_wall"), Lesion(papillary=True)))
    found = authors(truth, "lge.high")
    assert found == {
        "lge.high_segments": {"basal", "mid", "apical", "papillary"},
        "lge.high_walls": {"anteroseptal", "inferoseptal", "inferior"},
        "lge.high_patterns": {"transmural", "linear"},
        "lge.high_layers": {"transmural", "mid_wall", "papillary"},
    }


@pytest.mark.parametrize(
    ("high", "low", "status", "openprotocol"),
    [
        ((), (), "normal", ("normal",)),
        ((Lesion((1,), "mid_wall"),), (), "high", ("increased",)),
        ((), (Lesion((1,), "mid_wall"),), "low", ()),
        ((Lesion((1,), "mid_wall"),), (Lesion((1,), "mid_wall"),), "mixed", ("increased",)),
    ],
)
def test_t2_signal_is_low_or_mixed_only_for_the_authors(high, low, status, openprotocol):
    found = findings(Truth(oedema=high, details=Details(t2_low=low)))
    assert found["t2.signal_status"] == (status,)
    assert found["t2.signal"] == openprotocol


def test_motion_and_thickness_of_the_authors():
    truth = with_segments(
        s4={"motion": "akinesia"}, s5={"motion": "hypokinesia"}, s17={"thickness": "thinned"}
    )
    found = authors(truth, "cine.wall")
    assert found["cine.wall_amplitude"] == {"reduced", "absent"}
    assert found["cine.wall_coordination"] == {"coordinated"}
    assert found["cine.wall_thickness"] == {"thinned"}  # the apical cap alone makes no uneven wall
    found = authors(with_segments(s4={"motion": "dyskinesia"}, s7={"thickness": "thickened"}), "cine.wall")
    assert found["cine.wall_amplitude"] == {"paradoxical"}
    assert found["cine.wall_coordination"] == {"uncoordinated"}
    assert found["cine.wall_thickness"] == {"thickened", "heterogeneous"}


def test_a_stenotic_valve_makes_an_outflow_jet_but_no_obstruction_below_it():
    jet = Truth(outflow=("outflow_jet",))
    stenosis = Truth(outflow=("outflow_jet",), details=Details(signs=("aortic_stenosis",)))
    assert findings(jet)["cine.special_signs"] == ("outflow_obstruction",)
    assert findings(stenosis)["cine.special_signs"] == ("aortic_stenosis",)
    assert findings(stenosis)["cine.outflow"] == findings(jet)["cine.outflow"]
