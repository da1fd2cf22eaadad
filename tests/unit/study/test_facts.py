"""What study.json may leave out, and what happens where it is given and wrong."""

import gzip

import nibabel as nib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from study_folders import SHORT_AXIS_AFFINE, sha256, study, volume, voxels

from cardiolens.base.errors import InputError
from cardiolens.config.dataset import Windows
from cardiolens.study.group import displayed_volumes
from cardiolens.study.manifest import read_study
from cardiolens.study.nifti import parse_header

FACTS = ("volume_id", "shape", "spacing_mm", "sha256")
STACK = {"array": voxels(4, 1), "volume_id": "lge_sax", "layout": {}}
BEATING = {"array": voxels().reshape(6, 5, 3, 4), "layout": {}}


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Two study folders, an LGE stack and a cine of four axes, with the entry of each."""
    root = tmp_path_factory.mktemp("facts")
    return {name: (root / name, volume(root / name, **kind)) for name, kind in KINDS.items()}


KINDS = {"stack": STACK, "cine": BEATING}


@given(st.sets(st.sampled_from(FACTS)), st.sampled_from(list(KINDS)), st.booleans())
def test_what_the_file_tells_may_be_left_out(places, left_out, kind, as_null):
    folder, entry = places[kind]
    rest = {name: value for name, value in entry.items() if name not in left_out}
    rest |= dict.fromkeys(left_out) if as_null else {}
    (given,) = read_study(study(folder, entry)).manifest.volumes
    read = read_study(study(folder, rest))
    (found,) = read.manifest.volumes
    without = {"sha256"} & left_out
    assert found.model_dump(exclude=without) == given.model_dump(exclude=without)
    (one,) = displayed_volumes(read, Windows(pct=(1, 99)))
    assert one.row["source_sha256"] == entry["sha256"]


WRONG = {
    "volume_id": ("lge_4ch", "volume_id is 'lge_4ch'; expected 'lge_sax'"),
    "shape": ([6, 5, 3], r"its shape is \(6, 5, 4\); expected \(6, 5, 3\) as declared"),
    "spacing_mm": ([2, 2, 8], r"its spacing is \[2\.0, 2\.0, 10\.0\] mm; expected \[2\.0, 2\.0, 8\.0\]"),
    "sha256": ("0" * 64, f"its sha256 is [0-9a-f]{{64}}; expected {'0' * 64}"),
}


@pytest.mark.parametrize("name", FACTS)
def test_what_is_given_and_wrong_is_named_with_both_values(places, name):
    folder, entry = places["stack"]
    value, message = WRONG[name]
    with pytest.raises(InputError, match=message):
        list(displayed_volumes(read_study(study(folder, entry | {name: value})), Windows(pct=(1, 99))))


def test_the_spacing_of_phases_is_not_that_of_slices(tmp_path):
    folder = tmp_path / "S1"
    flat = volume(folder)
    del flat["spacing_mm"]
    with pytest.raises(InputError, match="its third axis holds phases too"):
        read_study(study(folder, flat))
    confirmed = flat | {"spacing_mm": [2, 2, 8], "confirmed": ["spacing"]}
    assert len(list(displayed_volumes(read_study(study(folder, confirmed)), Windows(pct=(1, 99))))) == 1
    wrong = read_study(study(folder, flat | {"spacing_mm": [3, 2, 8]}))
    with pytest.raises(
        InputError, match=r"its spacing is \[2\.0, 2\.0, 10\.0\] mm; expected \[3\.0, 2\.0, 8\.0\]"
    ):
        list(displayed_volumes(wrong, Windows(pct=(1, 99))))
    one_slice = flat | {"layout": {"n_slices": 12, "n_phases": 1}}
    assert read_study(study(folder, one_slice)).manifest.volumes[0].spacing_mm == (2.0, 2.0, 10.0)


@pytest.mark.parametrize(
    ("edges", "unit", "affine", "spacing"),
    [
        ((2, 2, 10), "mm", SHORT_AXIS_AFFINE, [2, 2, 10]),
        ((1.4, 1.4, 8), "mm", SHORT_AXIS_AFFINE, "sform 2 x 2 x 10 mm, pixdim 1.4 x 1.4 x 8 mm"),
        ((1.4, 1.4, 8), "mm", None, [1.4, 1.4, 8]),
        ((0.0014, 0.0014, 0.008), "meter", None, [1.4, 1.4, 8]),
        ((1, 1, 1), "mm", None, None),
        ((1, 0, 1), "mm", None, None),
    ],
)
def test_lengths_are_read_in_the_unit_that_the_header_names(tmp_path, edges, unit, affine, spacing):
    folder = tmp_path / "S1"
    entry = volume(folder, **STACK)
    image = nib.Nifti1Image(voxels(4, 1), affine)
    image.header.set_xyzt_units(unit)
    if affine is None:
        image.header["pixdim"][1:4] = edges
        image.header["sform_code"] = image.header["qform_code"] = 0
    raw = bytearray(image.to_bytes())
    raw[80:92] = np.array(edges, "<f4").tobytes()
    if affine is None:
        raw[252:256] = bytes(4)
    (folder / "lge_sax.nii.gz").write_bytes(gzip.compress(bytes(raw)))
    del entry["spacing_mm"]
    entry["sha256"] = sha256(folder / "lge_sax.nii.gz")
    if spacing is None:
        with pytest.raises(InputError, match="its header declares no voxel size; give spacing"):
            read_study(study(folder, entry))
    elif isinstance(spacing, str):
        with pytest.raises(InputError, match=rf"its header contradicts itself \({spacing}\)"):
            read_study(study(folder, entry))
    else:
        found = read_study(study(folder, entry)).manifest.volumes[0].spacing_mm
        assert list(found) == pytest.approx(spacing, rel=1e-6)


def test_a_field_that_is_mended_is_no_message_without_a_file(tmp_path, caplog):
    volume(tmp_path, path="lge.nii", **STACK)
    raw = bytearray((tmp_path / "lge.nii").read_bytes())
    raw[254:256] = (130).to_bytes(2, "little")  # sform_code, of 0 to 5
    parse_header(bytes(raw))
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"path": "none.nii"}, r"shape is left out, and none\.nii: cannot be read \(No such file"),
        ({"path": 3}, r"volumes\.0\.path: Input should be a valid string"),
    ],
)
def test_what_cannot_be_filled_in_is_named(places, changes, message):
    folder, entry = places["stack"]
    bare = {name: value for name, value in entry.items() if name not in FACTS} | changes
    with pytest.raises(InputError, match=message):
        read_study(study(folder, bare))
