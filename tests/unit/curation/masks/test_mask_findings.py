"""Numbers of masks against shapes of known size, and label maps that do not fit."""

import itertools
import json
import math
import tempfile
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage
from scipy.spatial.transform import Rotation

from cardiolens.base.errors import InputError
from cardiolens.config.dataset import PhantomSpec
from cardiolens.curation.masks.labels import MaskReason, Tissue, label_map, label_maps, quantities
from cardiolens.curation.masks.mask_findings import mask_findings, measure_study
from cardiolens.curation.masks.mask_stack import read_masked
from cardiolens.phantom import phantom_cohort as cohort
from cardiolens.phantom import roster
from cardiolens.phantom.geometry import Heart
from cardiolens.phantom.measure import measure
from cardiolens.phantom.parameters import canonical_values
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.protocol.tasks.truth import findings
from cardiolens.study.manifest import read_study
from tests.unit.curation.masks.hearts import UPRIGHT, folder_of, heart
from tests.unit.study_folders import SHORT_AXIS_AFFINE

LENGTH, RADIUS = 72.0, 26.0


@pytest.fixture
def place(tmp_path):
    numbers = itertools.count()
    return lambda: tmp_path / f"S{next(numbers)}"


def tilted(degrees, axis):
    return Rotation.from_rotvec(np.deg2rad(degrees) * np.array(axis) / np.linalg.norm(axis)).as_matrix()


@settings(max_examples=6)
@given(
    radius=st.floats(16, 30),
    pixel=st.tuples(st.floats(1.0, 1.8), st.floats(1.0, 1.8)),
    step=st.floats(5, 12),
    degrees=st.floats(-40, 40),
    axis=st.sampled_from([(1, 0, 0), (0, 1, 0), (1, 1, 1), (1, -2, 3)]),
)
def test_a_cylinder_has_its_volume_and_thickness_in_any_position(radius, pixel, step, degrees, axis):
    """Both borders and the thickness to a fraction of a pixel, with anisotropic pixels and a rotated affine.

    A drawn disc has more or fewer pixels than its area, by up to 4 % for 9 pixels of radius, the same in
    every slice. So radii are compared, not volumes.
    """
    with tempfile.TemporaryDirectory() as root:
        made = heart(pixel=pixel, step=step, radius=lambda z: radius, wall=lambda _: 9.0)
        folder = Path(root) / "S"
        folder_of(folder, made, pixel=pixel, step=step, turned=tilted(degrees, axis))
        numbers, study = measure_study(folder, "acdc").numbers, read_study(folder)
        ed = read_masked(study, study.manifest.volumes[0], label_map("acdc")).ed
    cavity = numbers["lv_edv_ml"]
    both = cavity + ed.volume_ml(ed.of([Tissue.MYOCARDIUM]))
    inner, outer = (math.sqrt(volume * 1000 / (math.pi * 9 * step)) for volume in (cavity, both))
    assert inner == pytest.approx(radius, abs=max(pixel) / 4)
    assert outer == pytest.approx(radius + 9, abs=max(pixel) / 4)
    thickness = [value for name, value in numbers.items() if name.startswith("thickness")]
    assert len(thickness) in (0, 16)  # none where the tilt contradicts the display
    assert all(abs(value - 9) < max(pixel) / 2 for value in thickness)


def ellipsoid(scale):
    """Radius of half an ellipsoid whose base lies half a slice above the first slice."""
    return lambda z: scale * RADIUS * math.sqrt(max(1 - ((z + 4) / LENGTH) ** 2, 0.0))


def test_a_half_ellipsoid_has_its_volumes_and_ejection_fraction(place):
    folder = place()
    folder_of(folder, heart(radius=ellipsoid(1.0)), heart(radius=ellipsoid(0.75), wall=lambda _: 12.0))
    numbers = measure_study(folder, "acdc").numbers
    whole = 2 / 3 * math.pi * RADIUS**2 * LENGTH / 1000
    assert numbers["lv_edv_ml"] == pytest.approx(whole, rel=0.02)
    assert numbers["lv_esv_ml"] == pytest.approx(whole * 0.75**2, rel=0.03)
    assert numbers["lv_ef_percent"] == pytest.approx(100 * (1 - 0.75**2), abs=1.0)
    assert numbers["rv_edv_ml"] > 20


@pytest.mark.parametrize("turn", [-30.0, 25.0])
def test_a_thick_septum_is_found_whichever_way_the_heart_is_turned(turn, place):
    """The right ventricle tells where the septum is."""
    made = heart(
        radius=lambda z: 22.0, wall=lambda degrees: np.where(np.abs(degrees - 180) < 60, 17.0, 8.5), turn=turn
    )
    folder_of(folder := place(), made)
    records = mask_findings(folder, "acdc")
    told = {(one["subtask"], one["value"]) for one in records if one["certainty"] == "certain"}
    assert {("C02", "Thickened"), ("C04", "Septal wall")} <= told
    assert {value for subtask, value in told if subtask == "C04"} == {"Septal wall"}
    measures = measure_study(folder, "acdc")
    assert measures.answers["cine.wall_thickness"].values == ("heterogeneous", "thickened")
    thickness = measures.numbers
    for segment in (2, 3, 8, 9, 14):
        assert abs(thickness[f"thickness_mm_{segment}"] - 17) < 0.8


@pytest.mark.parametrize(
    ("depths", "layer"),
    [
        ((-0.1, 0.5), "Subendocardial"),
        ((0.3, 0.7), "Mid-wall"),
        ((0.55, 1.1), "Subepicardial"),
    ],
)
def test_a_scar_has_its_wall_level_layer_and_volume(depths, layer, place):
    made = heart(
        pixel=(1.2, 1.2), size=(110, 110), wall=lambda _: 12.0, lesion=((305, 355), depths, (3, 4, 5))
    )
    folder_of(folder := place(), made, labels="myops", sequence="lge", pixel=(1.2, 1.2))
    told = {one["subtask"]: one for one in mask_findings(folder, "myops")}
    assert told["L01"]["value"] == "Present"
    assert told["L05"]["value"] == layer
    assert (told["L03"]["value"], told["L03"]["doubt"]) == ("Lateral wall", "structure_not_labelled")
    assert (told["L02"]["value"], told["L02"]["certainty"]) == ("Mid segment", "uncertain")
    numbers = measure_study(folder, "myops").numbers
    inner, outer = 24 + 12 * max(depths[0], 0), 24 + 12 * min(depths[1], 1)
    volume = math.pi * (outer**2 - inner**2) * 50 / 360 * 3 * 8 / 1000
    assert numbers["scar_ml"] == pytest.approx(volume, rel=0.06)
    assert numbers["scar_share_11"] > 0.2
    assert not any(numbers[f"scar_share_{segment}"] for segment in (1, 2, 3, 7, 8, 9, 13, 14))


@pytest.mark.parametrize("core", [False, True])
def test_a_dark_core_makes_the_signal_mixed_and_has_its_wall_and_level(core, place):
    """Findings under the names of `authors-1`; EMIDEC labels no papillary muscle, which may enhance too."""
    made = heart(
        pixel=(1.2, 1.2),
        size=(110, 110),
        wall=lambda _: 12.0,
        lesion=((305, 355), (-0.1, 1.1), (3, 4, 5)),
        right=False,
    )
    if core:
        scar = made == Tissue.SCAR
        made[ndimage.binary_erosion(scar, np.ones((3, 3, 1)), iterations=3)] = Tissue.OBSTRUCTION
    folder_of(folder := place(), made, labels="emidec", sequence="lge", pixel=(1.2, 1.2))
    answers = measure_study(folder, "emidec").answers
    assert answers["lge.enhancement_status"].values == ("abnormal",)
    assert answers["lge.high_walls"].values == ("inferolateral",)
    assert answers["lge.signal_kind"].values == (("mixed",) if core else ("high",))
    assert answers["lge.low_walls"].values == (("inferolateral",) if core else ())
    assert answers["lge.low_segments"].values == (("mid",) if core else ())
    assert answers["lge.low_layers"].values == (("mid_wall",) if core else ())
    assert answers["lge.high_layers"].reason == MaskReason.STRUCTURE_NOT_LABELLED


def test_without_a_scar_a_map_that_labels_scar_says_so_and_another_says_nothing(place):
    folder_of(one := place(), heart(right=False), labels="emidec", sequence="lge")
    told = {record["subtask"]: record for record in mask_findings(one, "emidec")}
    assert told["L01"]["value"] == "Absent"
    assert "L03" not in told  # no question without a lesion
    folder_of(other := place(), heart())
    told = {record["subtask"]: record for record in mask_findings(other, "acdc")}
    assert (told["L01"]["value"], told["L01"]["doubt"]) == (None, "not_labelled")


@pytest.mark.parametrize(("written", "read"), [("acdc", "mnms")])
def test_the_wrong_convention_is_refused_and_the_other_named(written, read, place):
    folder_of(folder := place(), heart(), labels=written)
    with pytest.raises(InputError, match=rf"only \d+ % of the border.*also fit: {written}"):
        mask_findings(folder, read)
    assert mask_findings(folder, written)


@pytest.mark.parametrize(
    ("labels", "values", "right", "message"),
    [
        ("emidec", {1: 3, 2: 1, 3: 2}, True, r"a lesion is .* thick"),
        ("mnms", {2: 1, 3: 2, 4: 3}, False, "touches that of the left"),
    ],
)
def test_a_right_ventricle_is_not_taken_for_a_scar_nor_a_scar_for_a_right_ventricle(
    labels, values, right, message, place
):
    """M&Ms and EMIDEC share the values 1 to 3 for other things."""
    sequence = "lge" if labels == "emidec" else "cine"
    made = heart(lesion=((200, 290), (-0.1, 0.6), (2, 3, 4, 5)), right=right)
    tissue_of = label_maps()[labels].tissue_of(sequence)
    back = np.vectorize(lambda tissue: int(tissue_of[values.get(int(tissue), 0)]))(made)
    folder_of(folder := place(), back, labels=labels, sequence=sequence)
    with pytest.raises(InputError, match=message):
        mask_findings(folder, labels)


def test_labels_that_a_writer_scaled_are_those_that_it_was_given(place):
    path = folder_of(folder := place(), heart(), heart(radius=lambda z: 14.0)) / "masks" / "cine_sax.nii.gz"
    told, image = mask_findings(folder, "acdc"), nib.load(path)
    image.header.set_data_dtype(np.int16)
    nib.save(nib.Nifti1Image(image.get_fdata(), image.affine, image.header), path)
    assert nib.load(path).dataobj.get_unscaled().min() < -30_000
    manifest = json.loads((folder / "study.json").read_text())
    manifest["volumes"][0]["mask"].pop("sha256")
    (folder / "study.json").write_text(json.dumps(manifest))
    assert mask_findings(folder, "acdc") == told


def test_unknown_values_maps_and_spacings_are_named(place):
    folder_of(folder := place(), heart(), labels="myops", sequence="lge")
    with pytest.raises(InputError, match="the mask has the values 200, 500, 600; expected those of emidec"):
        mask_findings(folder, "emidec")
    with pytest.raises(InputError, match="label map 'acds' is not known; choose one of acdc"):
        mask_findings(folder, "acds")
    with pytest.raises(InputError, match="no short-axis mask of cine"):
        mask_findings(folder, "acdc")
    folder_of(gap := place(), heart(), turned=np.diag([1.0, 1.0, 1.25]))
    with pytest.raises(InputError, match=r"its spacing is \[1.5, 1.5, 10.0\] mm; expected \[1.5, 1.5, 8.0\]"):
        mask_findings(gap, "acdc")
    skew = np.eye(3)
    skew[:2, 1] = 0.2, 0.96**0.5  # as long as before
    folder_of(skewed := place(), heart(), turned=skew)
    with pytest.raises(InputError, match="skewed"):
        mask_findings(skewed, "acdc")


@pytest.mark.parametrize(
    "changes",
    [
        {"spatial_order": "unknown"},
        {"display_transform": {"flip_rows": True, "flip_cols": True}},
        {"turned": SHORT_AXIS_AFFINE[:3, :3] / [2, 2, -10] @ UPRIGHT.T},  # its slices against the image's
    ],
    ids=["order", "display", "mask"],
)
def test_without_a_known_order_or_display_volumes_are_told_but_no_segments(changes, place):
    folder_of(folder := place(), heart(), heart(radius=lambda z: 14.0), **changes)
    told = {one["subtask"]: one for one in mask_findings(folder, "acdc")}
    assert (told["C02"]["value"], told["C02"]["doubt"]) == (None, "no_segments")
    assert told["C10"]["value"] == "Normal"


def test_a_volume_is_graded_by_body_surface_and_sex(place):
    folder_of(folder := place(), heart(radius=ellipsoid(1.1)), heart(radius=ellipsoid(0.6)))
    manifest = json.loads((folder / "study.json").read_text())

    def size(index, **facts):
        """C01 of a heart with this end-diastolic volume by body surface."""
        body = {"height_cm": 180.0, "weight_kg": (edv / index) ** 2 * 20} if index else {}
        (folder / "study.json").write_text(json.dumps(manifest | body | facts))
        return next(one for one in mask_findings(folder, "acdc") if one["subtask"] == "C01")

    edv = measure_study(folder, "acdc").numbers["lv_edv_ml"]
    assert size(None)["doubt"] == MaskReason.NO_BODY_SIZE
    assert size(90, sex="male")["value"] == "Normal size"
    assert size(90, sex="female")["doubt"] == MaskReason.BETWEEN_GRADES
    assert size(90)["doubt"] == MaskReason.BETWEEN_GRADES
    assert size(150)["value"] == "Markedly dilated"
    with pytest.raises(InputError, match="height_cm: Input should be greater than 30"):
        size(90, height_cm=1.8)


def test_a_systole_that_is_larger_than_diastole_tells_nothing(place):
    folder_of(folder := place(), heart(radius=lambda z: 18.0), heart(radius=lambda z: 24.0))
    told = {one["subtask"]: one for one in mask_findings(folder, "acdc")}
    assert (told["C10"]["value"], told["C10"]["doubt"]) == (None, "not_plausible")


def test_every_subtask_has_a_legal_answer_or_a_reason(place):
    folder_of(folder := place(), heart(), heart(radius=lambda z: 17.0))
    catalogue = load_catalogue("openprotocol-1")
    records = mask_findings(folder, "acdc")
    assert len({one["id"] for one in records}) == len(records)
    for one in records:
        texts = {option.text for option in catalogue[one["subtask"]].options}
        assert (one["value"] in texts) or (one["value"] is None and one["doubt"] in set(MaskReason))
        assert (one["certainty"] == "certain") == (one["doubt"] is None)
        assert one["origin"] == one["extractor"] == "mask"
    unconditional = {one.id for one in catalogue.subtasks.values() if one.options and not one.parent}
    assert unconditional <= {one["subtask"] for one in records}


def test_bands_do_not_overlap_and_lead_to_options_of_the_catalogue():
    fields = {one.finding: one for one in load_catalogue("openprotocol-1").subtasks.values() if one.options}
    for quantity in quantities().values():
        values = {value for option in fields[quantity.finding].options for value in option.values}
        for bands in (quantity.male, quantity.female):
            assert set(bands) <= values
            ends = sorted(bands.values())
            assert all(low < high for low, high in ends)
            assert all(one[1] < other[0] for one, other in itertools.pairwise(ends))


@pytest.mark.full
@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=[pytest.mark.long] * (one != "PH-HCM-ASH")) for one in canonical_values()],
)
def test_what_masks_of_the_phantom_tell_for_certain_is_its_truth(name, tmp_path, monkeypatch):
    """At default size; ejection fractions within 7 points (the base leaves a slice), volumes within 4 %."""
    every = cohort.views()
    some = {code: view for code, view in every.items() if code in ("cine_sax", "lge_sax", "t2_sax")}
    monkeypatch.setattr(cohort, "views", lambda: some)
    spec = PhantomSpec(canonical=(name,), size="default", also=("masks",))
    cohort.make_cohort(spec, tmp_path / "made")
    made = roster.study(2026, name)
    path = tmp_path / "made" / "studies" / name / "study.json"
    body = {"height_cm": 180.0, "weight_kg": made.parameters.bsa**2 * 20}
    path.write_text(json.dumps(json.loads(path.read_text()) | body))
    measures = measure_study(path.parent, "phantom")
    known = findings(made.truth)
    told = {one: answer for one, answer in measures.answers.items() if answer.reason is None}
    assert {one: set(answer.values) for one, answer in told.items()} == {one: set(known[one]) for one in told}
    assert {"lge.enhancement", "lge.enhancement_status", "t2.signal"} <= set(told)
    assert not made.parameters.lge_low or told["lge.signal_kind"].values == ("mixed",)
    exact, bsa = measure(Heart(made.parameters)), made.parameters.bsa
    assert measures.numbers["lv_edv_ml"] / bsa == pytest.approx(exact.lv_edv_index, rel=0.04)
    assert measures.numbers["rv_edv_ml"] / bsa == pytest.approx(exact.rv_edv_index, rel=0.04)
    assert measures.numbers["lv_ef_percent"] == pytest.approx(exact.lv_ef, abs=7)
    assert measures.numbers["rv_ef_percent"] == pytest.approx(exact.rv_ef, abs=7)
