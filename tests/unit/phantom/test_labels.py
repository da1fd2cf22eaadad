from dataclasses import replace

import pytest

from cardiolens.phantom.geometry import Heart
from cardiolens.phantom.parameters import DefectShape, LesionShape, Parameters, archetypes
from cardiolens.phantom.roster import SEQUENCES, catalogue, draw_study, study
from cardiolens.phantom.truth_labels import GuardBandError, truth
from cardiolens.protocol.tasks.instantiate import answer, answerable_subtasks
from cardiolens.protocol.tasks.truth import findings

# the labels that protocol 10.4 finds worth asserting
ASSERTED = {
    "PH-HCM-ASH": "C02 C; C03 ABC; C04 AB; C05 B; C10 A; C16 B; C17 B; C18 BC; "
    "L02 AB; L03 B; L04 B; L05 B; D01 C; D02 A",
    "PH-HCM-APICAL": "C03 CD; C04 ABCD; C05 C; D02 A",
    "PH-DCM": "C01 C; C02 A; C06 B; C07 ABCD; C09 A; C10 D; C12 B; C14 B; C15 B; "
    "L02 AB; L03 B; L04 C; L05 B; D02 B",
    "PH-ICM-LAD": "C01 B; C02 BD; C06 D; C07 ABCD; C08 AB; C09 B; C10 C; "
    "L02 BCD; L03 AB; L04 A; L05 D; P02 BC; P04 B; T04 B; D01 B",
    "PH-ICM-RCA": "C02 A; C06 C; C08 BC; C09 B; C10 B; L02 ABC; L03 C; L04 A; L05 A; P04 A; D01 B",
    "PH-INFLAM": "C19 B; L03 D; L04 B; L05 C; T01 B; T03 D; D02 C",
    "PH-RCM": "C02 C; C03 ABCD; C05 D; C11 B; C16 BC; C19 B; L04 D; L05 A; D02 D",
    "PH-ACM": "C12 B; C13 D; C14 C; C15 C; C16 C; C17 C; L03 CDE; L04 AC; L05 C; D02 E",
}


def answers(name):
    found = findings(study(2026, name).truth)
    return {
        subtask.id: "".join(answer(subtask, found))
        for subtask in answerable_subtasks(catalogue(), found, SEQUENCES)
        if subtask.options
    }


@pytest.mark.parametrize("name", ASSERTED)
def test_labels_of_the_canonical_table(name):
    expected = dict(pair.split() for pair in ASSERTED[name].split("; "))
    found = answers(name)
    assert {subtask: found.get(subtask) for subtask in expected} == expected


@pytest.mark.parametrize(
    ("changes", "band"),
    [
        ({"wall_of": {3: 12}}, "thickness"),
        ({"fluid": 4}, "pericardium"),
        ({"defect": DefectShape((4, 10), 0.7)}, "perfusion_depth"),
        ({"lge": (LesionShape((4,), (0.1, 0.5)),)}, "lesion_layer"),
        ({"wall": 5, "lge": (LesionShape((4,), (0.0, 0.55)),)}, "lesion_layer"),
        ({"lge": (LesionShape((4,), (0.0, 0.5)), LesionShape((4, 10), (0.6, 1.0)))}, "lesion_layer"),
        ({"wall_of": {3: 10.9}, "wall": 7.5}, "unevenness"),
        ({"lge_low": (LesionShape((4,), (0.0, 1.0)),)}, "lge_low"),
        ({"pericardial_enhancement": True}, "pericardial_enhancement"),
    ],
)
def test_every_guard_band_refuses(changes, band):
    with pytest.raises(GuardBandError) as error:
        truth(Heart(replace(Parameters(), **changes)), "normal", None)
    assert error.value.name == band


def test_every_variant_is_free_of_guard_bands_and_belongs_to_its_class():
    assert sum(archetype.share for archetype in archetypes().values()) == pytest.approx(1)
    for kind, archetype in archetypes().items():
        for variant in archetype.variants:
            made = draw_study("X", "seed", kind, variant)
            assert (made.truth.etiology, made.truth.subtype) == (archetype.etiology, archetype.subtype)
