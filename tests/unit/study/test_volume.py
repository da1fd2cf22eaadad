import gzip
import json
import struct

import nibabel as nib
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from study_folders import SHORT_AXIS_AFFINE, sha256, volume, voxels, write_nifti

from cardiolens.base.errors import InputError
from cardiolens.study.volume import read_volume
from cardiolens.study.volume_manifest import VolumeManifest
from cardiolens.study.windowing import grey_scale

DRAWN = ("grid", "order", "apex_first", "transform")
TRANSFORMS = st.fixed_dictionaries({name: st.booleans() for name in ("transpose", "flip_rows", "flip_cols")})


def opened(folder, entry):
    return read_volume(folder, VolumeManifest.model_validate_json(json.dumps(entry)))


def shown(volume):
    """Stored values as displayed, in canonical order."""
    return np.stack([volume.displayed(frame) for frame in volume.frames])


def refused(folder, entry):
    with pytest.raises(InputError) as caught:
        opened(folder, entry)
    return str(caught.value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30)
@given(
    grid=st.tuples(st.integers(1, 4), st.integers(1, 5)),
    order=st.sampled_from(["slice_major", "phase_major", "4d"]),
    apex_first=st.booleans(),
    transform=TRANSFORMS,
)
def test_every_layout_of_a_study_is_read_to_the_same_frames(tmp_path, **drawn):
    grid, order, apex_first, transform = (drawn[name] for name in DRAWN)
    n_slices, n_phases = grid
    frames = voxels(n_slices, n_phases).reshape(6, 5, n_slices, n_phases)  # by canonical rank and phase
    stored_frames = frames[:, :, ::-1] if apex_first else frames
    cells = [(s, p) for s in range(n_slices) for p in range(n_phases)]
    places = {
        "slice_major": cells,
        "phase_major": sorted(cells, key=lambda cell: cell[::-1]),
        "4d": cells,
    }[order]
    stored = (
        stored_frames if order == "4d" else np.stack([stored_frames[:, :, s, p] for s, p in places], axis=2)
    )
    layout = {"order": order if order != "4d" else "phase_major", "n_slices": n_slices, "n_phases": n_phases}
    entry = volume(
        tmp_path,
        stored,
        layout=layout,
        spatial_order="apex_to_base" if apex_first else "base_to_apex",
        display_transform=transform,
    )
    found = opened(tmp_path, entry)
    expected = frames.reshape(6, 5, -1).transpose(2, 0, 1)
    expected = expected.transpose(0, 2, 1) if transform["transpose"] else expected
    expected = expected[:, ::-1] if transform["flip_rows"] else expected
    expected = expected[:, :, ::-1] if transform["flip_cols"] else expected
    assert np.array_equal(shown(found), expected)


def test_the_slope_and_byte_order_of_the_header_are_kept(tmp_path):
    stored = voxels().astype(">i2")
    header = nib.Nifti1Header(endianness=">")
    header.set_data_dtype(stored.dtype)
    image = nib.Nifti1Image(stored, SHORT_AXIS_AFFINE, header)
    image.to_filename(tmp_path / "a.nii")
    raw = bytearray((tmp_path / "a.nii").read_bytes())
    raw[112:120] = struct.pack(">ff", 2.5, -4)  # nibabel writes its own scaling
    raw[-stored.nbytes :] = stored.tobytes(order="F")
    (tmp_path / "a.nii").write_bytes(raw)
    found = opened(tmp_path, volume(tmp_path) | {"path": "a.nii", "sha256": sha256(tmp_path / "a.nii")})
    assert (found.slope, found.inter) == (2.5, -4)
    assert np.array_equal(shown(found), stored.transpose(2, 0, 1))


def test_nifti_2_and_gzip_of_several_members_are_read(tmp_path):
    stored = voxels()
    nib.Nifti2Image(stored, SHORT_AXIS_AFFINE).to_filename(tmp_path / "b.nii")
    raw = (tmp_path / "b.nii").read_bytes()
    (tmp_path / "b.nii.gz").write_bytes(gzip.compress(raw[:600]) + gzip.compress(raw[600:]))
    found = opened(tmp_path, volume(tmp_path) | {"path": "b.nii.gz", "sha256": sha256(tmp_path / "b.nii.gz")})
    assert np.array_equal(shown(found), stored.transpose(2, 0, 1))


def test_one_of_several_images_of_a_slice_is_named_or_all_are_refused(tmp_path):
    stored = np.stack([voxels(6, 1), voxels(6, 1, seed=8)], axis=3)
    entry = volume(tmp_path, stored, "lge_sax", layout={})
    with pytest.raises(ValueError, match=r"holds 2 images of each slice.* one that is used \(0\.\.1\)"):
        opened(tmp_path, entry)
    for take in (0, 1):
        found = opened(tmp_path, entry | {"take": take})
        assert found.grid.shape[:2] == (6, 1)
        assert np.array_equal(shown(found), stored[..., take].transpose(2, 0, 1))
    with pytest.raises(ValueError, match="take is 2, and shape"):
        opened(tmp_path, entry | {"take": 2})


def beating(n_slices, n_phases):
    """A stack whose slices differ more than its phases, with axes (i, j, slice, phase)."""
    rng = np.random.default_rng(3)
    beat = np.cos(np.arange(n_phases) / n_phases * 2 * np.pi) * 40
    slices, moving = rng.integers(200, 900, (12, 12, n_slices, 1)), rng.random((12, 12, 1, 1))
    return (slices + moving * beat + rng.integers(0, 5, (12, 12, n_slices, n_phases))).astype(np.int16)


@pytest.mark.parametrize("n_slices", [6, 20])
def test_time_in_place_of_slices_is_refused_with_the_evidence(tmp_path, n_slices):
    stored = beating(n_slices, 20)
    assert opened(tmp_path, volume(tmp_path, stored, layout={})).grid.shape[1] == 20
    swapped = volume(tmp_path, stored.swapaxes(2, 3), layout={})
    assert "time_looks_like_slices: neighbouring phases differ by" in refused(tmp_path, swapped)
    assert opened(tmp_path, swapped | {"confirmed": ["layout"]}).grid.shape[0] == 20


def test_a_cycle_declared_as_a_stack_is_refused_with_the_evidence(tmp_path):
    entry = volume(tmp_path, beating(1, 20)[:, :, 0], layout={"order": "static"})
    assert "slices_look_like_time: its last slice differs from its first by" in refused(tmp_path, entry)
    stack = volume(tmp_path, beating(20, 1)[:, :, :, 0], layout={"order": "static"})
    assert opened(tmp_path, stack).grid.shape[0] == 20


@pytest.mark.parametrize("view", ["sax", "4ch"])
def test_a_single_slice_has_an_order_whatever_is_declared(tmp_path, view):
    entry = volume(tmp_path, voxels(1, 4), f"cine_{view}", layout={"n_slices": 1}, spatial_order="unknown")
    assert opened(tmp_path, entry).manifest.known_order == "base_to_apex"


def test_a_locked_file_is_there_and_its_path_is_right(tmp_path, monkeypatch):
    def locked(path, most):
        raise PermissionError(13, "Permission denied", str(path))

    entry = volume(tmp_path)
    monkeypatch.setattr("cardiolens.study.nifti.read_bytes", locked)
    assert refused(tmp_path, entry).endswith("that study.json names; let this user read it")


def test_a_mask_is_hashed_and_must_have_the_shape_of_its_image(tmp_path):
    entry = volume(tmp_path)
    entry["mask"] = {"path": "mask.nii.gz", "sha256": write_nifti(tmp_path / "mask.nii.gz", voxels())}
    assert opened(tmp_path, entry).n_bytes > (tmp_path / "cine_sax.nii.gz").stat().st_size
    entry["mask"]["sha256"] = write_nifti(tmp_path / "mask.nii.gz", voxels(5, 4))
    assert refused(tmp_path, entry) == (
        "mask.nii.gz: is a mask of shape (6, 5, 20); expected (6, 5, 12), the shape of cine_sax.nii.gz; "
        "correct the mask or leave it out"
    )
    entry["mask"]["sha256"] = "0" * 64
    assert refused(tmp_path, entry).startswith("mask.nii.gz: its sha256 is ")


def test_a_header_that_places_its_voxels_twice_is_refused_until_a_person_looked(tmp_path):
    entry = volume(tmp_path) | {"sha256": None}
    image = nib.Nifti1Image(voxels(), SHORT_AXIS_AFFINE)
    shifted = SHORT_AXIS_AFFINE.copy()
    shifted[:3, 3] += 30
    image.set_sform(SHORT_AXIS_AFFINE, code=1)
    image.set_qform(shifted, code=1)
    nib.save(image, tmp_path / entry["path"])
    assert "its sform and qform place the voxels differently" in refused(tmp_path, entry)
    assert opened(tmp_path, entry | {"confirmed": ["display"]}).grid.shape[0] == 3


PCT = (1.0, 99.0)
STORED = npst.arrays(np.int16, (3, 4, 5)).filter(lambda a: np.ptp(a.astype(int)) > 0)


@given(STORED, st.sampled_from([(1.0, 0.0), (2.5, -7.0), (-0.5, 3.0)]))
def test_the_window_lies_at_the_percentiles_of_the_intensities(stored, scaling):
    slope, inter = scaling
    scale = grey_scale(stored, PCT, slope, inter)
    intensities = stored.astype(float) * slope + inter
    zeros = intensities == 0
    imaged = intensities[~zeros] if zeros.mean() >= 0.01 and not zeros.all() else intensities
    low, high = np.percentile(imaged, PCT)
    if low == high:
        low, high = intensities.min(), intensities.max()
    assert (scale.low, scale.high) == pytest.approx((low, high), abs=1e-6)


@given(STORED)
def test_integers_and_the_same_values_as_floats_give_the_same_bytes(stored):
    counted, ranked = grey_scale(stored, PCT, 1, 0), grey_scale(stored.astype(np.float64), PCT, 1, 0)
    assert counted.table is not None
    assert ranked.table is None
    assert np.array_equal(counted.show(stored[1]), ranked.show(stored[1].astype(np.float64)))


@pytest.mark.parametrize("dtype", [">i2", "u8", ">f8"])
def test_every_dtype_is_shown_alike(dtype):
    stored = np.arange(101).reshape(1, 1, 101)
    expected = grey_scale(stored.astype(np.int16), PCT, 1, 0).show(stored[0])
    scale = grey_scale(stored.astype(dtype), PCT, 1, 0)
    assert (scale.low, scale.high) == (1, 99)
    assert np.array_equal(scale.show(stored.astype(dtype)[0]), expected)


def test_values_are_clipped_and_halves_round_up():
    stored = np.arange(0, 511).reshape(1, 1, 511)
    shown = grey_scale(stored, (0, 100), 1, 0).show(stored[0])[0]
    assert shown.dtype == np.uint8
    assert shown[[0, 1, 2, 3, 510]].tolist() == [0, 1, 1, 2, 255]  # 0.5 -> 1, 1.5 -> 2
    narrow = grey_scale(stored, (20, 80), 1, 0)
    assert (narrow.low, narrow.high) == (102, 408)
    assert narrow.show(stored[0])[0][[50, 102, 408, 500]].tolist() == [0, 0, 255, 255]


def test_a_negative_slope_inverts_the_picture():
    stored = np.arange(101, dtype=np.int16).reshape(1, 1, 101)
    scale = grey_scale(stored, PCT, -1, 0)
    assert (scale.low, scale.high) == (-99, -1)
    assert scale.show(stored[0])[0][[0, 50, 100]].tolist() == [255, 128, 0]


def test_where_both_percentiles_coincide_the_window_spans_all_values():
    stored = np.zeros((1, 20, 20), np.int16)
    stored[0, 3, 4] = 9
    scale = grey_scale(stored, PCT, 2, 1)
    assert (scale.low, scale.high) == (1, 19)
    assert scale.show(stored[0])[3, 4] == 255


@pytest.mark.parametrize("dtype", ["i2", "f8"])
@pytest.mark.parametrize("fill", [0, 7])
@given(share=st.floats(0.0, 0.45))
def test_padding_moves_no_window(dtype, fill, share):
    """A border of zeros or of any other value, of whatever width, on some sides."""
    heart = np.random.default_rng(4).integers(100, 3000, (3, 40, 40)).astype(dtype)
    padded = np.pad(heart, ((0, 0), (0, round(40 * share)), (round(20 * share), 0)), constant_values=fill)
    bare, framed = (grey_scale(frames, PCT, 1, 0) for frames in (heart, padded))
    assert (bare.low, bare.high) == (framed.low, framed.high)


def test_a_window_by_intensities_stands_in_place_of_percentiles():
    stored = np.arange(101).reshape(1, 1, 101)
    scale = grey_scale(stored, PCT, 2, 1, window=(51, 306))
    assert scale.show(stored[0])[0][[0, 25, 50, 75]].tolist() == [0, 0, 50, 100]


def test_integers_beyond_those_of_floats_are_refused():
    stored = np.arange(81, dtype=np.uint64).reshape(1, 9, 9) + np.uint64(2**63)
    with pytest.raises(InputError, match="too far apart or too near to scale"):
        grey_scale(stored, PCT, 1.0, 0.0)
