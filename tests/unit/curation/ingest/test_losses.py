"""What an export lost: phases, beats, slices, images. Nothing of it is silent.

`bench/other_scanners.py` has the losses one by one, and its golden pins what the import makes of each.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from cardiolens.curation.ingest.frame_records import Image
from cardiolens.curation.ingest.reasons import Reason
from cardiolens.curation.ingest.series_stacks import stacks_of
from tests.unit.curation.ingest.exports import CINE, NORMAL, SHORT_AXIS
from tests.unit.curation.ingest.set_phantoms import hearts, imported_set, proposals_of, write_set
from tests.unit.curation.ingest.test_other_makers import image

SLICES, PHASES = 4, 12
PLACES = [(k, phase) for k in range(SLICES) for phase in range(PHASES)]


def cine(folder: Path, **fields: object) -> list[Image]:
    """A cine whose slices have heart rates of their own."""
    told = {**CINE, "CardiacNumberOfImages": None, "SliceThickness": 8.0}
    first = image(folder, ImageOrientationPatient=SHORT_AXIS, **told)
    made = []
    for number, (k, phase) in enumerate(PLACES, start=1):
        x, y, z = (float(value) for value in -8.0 * k * NORMAL)
        own = {"position": (x, y, z), "instance_number": number * 100_000}
        own["trigger"] = round(4 * k + phase * (66 + k), 1)
        identity = replace(first.identity, instance=f"{k}-{phase}")
        made.append(replace(first, identity=identity, **own | fields))
    return made


def without(made: list[Image], lost: Callable[[int, int], bool]) -> list[Image]:
    return [each for each, at in zip(made, PLACES, strict=True) if not lost(*at)]


def renumbered(made: list[Image]) -> list[Image]:
    """The frames numbered anew, without a word of how many there were."""
    return [replace(each, instance_number=number * 100_000) for number, each in enumerate(made, start=1)]


def test_a_whole_series_has_no_flag(tmp_path):
    [stack], left_out = stacks_of(cine(tmp_path, images_declared=SLICES * PHASES, apart=8.0))
    assert (set(stack.flags), left_out) == (set(), [])


@pytest.mark.parametrize("phase", [0, 5])
def test_a_phase_that_every_slice_lacks_is_told_by_numbers_and_by_times(tmp_path, phase):
    left = without(cine(tmp_path), lambda _, at: at == phase)
    for found in [left, renumbered(left)][: 2 if phase else 1]:
        [stack], _ = stacks_of(found)
        assert stack.n_phases == PHASES - 1
        assert "incomplete" in stack.flags


@pytest.mark.parametrize(("phases", "flags"), [(PHASES, set()), (PHASES - 1, {"incomplete"})])
@pytest.mark.parametrize("told", [{"phases_declared": PHASES}, {"beat": PHASES * 67.5}])
def test_a_last_phase_is_told_by_the_count_and_by_the_length_of_a_beat(tmp_path, told, phases, flags):
    [stack], _ = stacks_of(renumbered(without(cine(tmp_path, **told), lambda _, phase: phase >= phases)))
    assert set(stack.flags) == flags


def test_of_a_slice_that_lacks_a_phase_within_nothing_is_cut_off(tmp_path):
    stacks, left_out = stacks_of(without(cine(tmp_path), lambda k, phase: (k, phase) == (1, 6)))
    stack = max(stacks, key=lambda stack: stack.n_slices)
    assert (stack.n_slices, stack.n_phases) == (SLICES - 1, PHASES)
    assert {reason for _, reason, _ in left_out} == {Reason.INCOMPLETE}
    assert "incomplete" in stack.flags


def test_slices_that_lack_another_phase_each_are_no_volume(tmp_path):
    stacks, _ = stacks_of(without(cine(tmp_path), lambda k, phase: phase == 2 + 2 * k))
    assert "phases_contradicted" in max(stacks, key=lambda stack: stack.n_slices).flags


@pytest.mark.parametrize(
    ("told", "lost"),
    [
        ({"images_declared": SLICES * PHASES}, lambda k, _: k == SLICES - 1),
        ({"apart": 8.0}, lambda k, _: k % 2),
    ],
)
def test_slices_are_told_by_the_count_of_images_and_the_declared_distance(tmp_path, told, lost):
    [stack], _ = stacks_of(without(cine(tmp_path, **told), lost))
    assert "incomplete" in stack.flags


def test_a_frame_that_is_there_twice_is_taken_once(tmp_path):
    made = cine(tmp_path)
    second = replace(made[4], identity=replace(made[4].identity, instance="again"), instance_number=9_900_000)
    [stack], left_out = stacks_of([*made, second])
    assert (stack.n_slices, stack.n_phases) == (SLICES, PHASES)
    assert [reason for _, reason, _ in left_out] == [Reason.REPEAT]
    assert "repeats_left_out" in stack.flags


def test_a_cine_of_a_set_that_lacks_a_phase_waits_for_a_person(tmp_path):
    write_set(hearts(("PH-NORMAL",)), "acdc", tmp_path / "export")
    [path] = (tmp_path / "export").rglob("*_4d.nii.gz")
    whole = nib.load(path)
    voxels = np.delete(np.asarray(whole.dataobj), 3, axis=3)
    nib.save(nib.Nifti1Image(voxels, whole.affine, whole.header), path)
    out = imported_set(tmp_path / "export", tmp_path / "out")
    [study] = (out / "proposals").iterdir()
    [proposal] = [each for each in proposals_of(out, study) if each["volume_id"] == "cine_sax"]
    assert (proposal["status"], proposal["reason"]) == ("waits", "contradicted")
    assert "phases_contradicted" in proposal["flags"]
