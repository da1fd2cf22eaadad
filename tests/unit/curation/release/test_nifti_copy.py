"""Copies for a release: voxels and geometry come through, and nothing else does."""

import gzip
import struct
from pathlib import Path

import nibabel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardiolens.curation.release.nifti_copy import copy_of

# Fields of a NIfTI-1 header that say nothing of where voxels lie or what they mean, from and to; the numbers
# of positions that no code declares; and those of axes that a volume does not have.
FREE = ((4, 32), (32, 39), (56, 70), (74, 76), (120, 123), (124, 148), (148, 252), (328, 344), (348, 352))
UNDECLARED = ((252, (256, 280)), (254, (280, 328)))


def stored(order: str = "<") -> bytearray:
    header = nibabel.Nifti1Header(endianness=order)
    header.set_data_dtype(np.int16)
    image = nibabel.Nifti1Image(
        np.arange(60, dtype=np.int16).reshape(4, 5, 3), np.diag([1.5, 1.25, 8.0, 1.0]), header
    )
    image.set_qform(np.diag([1.5, 1.25, 8.0, 1.0]), code=1)
    return bytearray(image.to_bytes())


@pytest.mark.parametrize("zipped", [False, True])
def test_no_byte_of_a_free_field_comes_through(tmp_path: Path, zipped: bool) -> None:
    content, places = stored(), list(FREE)
    for code, place in UNDECLARED:
        content[code : code + 2] = bytes(2)
        places.append(place)
    for first, end in places:
        content[first:end] = bytes(1 + (31 * first + at) % 255 for at in range(end - first))
    struct.pack_into("<3h", content, 50, 1966, 5, 23)  # dim[5..7]
    struct.pack_into("<4f", content, 92, 1966.0, 5.0, 23.0, 7.0)  # pixdim[4..7]
    path = tmp_path / ("x.nii.gz" if zipped else "x.nii")
    path.write_bytes(gzip.compress(bytes(content)) if zipped else bytes(content))
    copy = copy_of(path)
    plain = gzip.decompress(copy) if zipped else copy
    assert [place for place in places if any(plain[slice(*place)])] == []
    assert struct.unpack_from("<4h", plain, 48) == (1, 1, 1, 1)
    assert struct.unpack_from("<4f", plain, 92) == (0, 0, 0, 0)
    assert plain[352:472] == bytes(stored()[352:472])


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize(
    ("form", "at", "numbers"),
    [
        ("h", 72, (1966, 16)),  # bitpix, which the datatype tells
        ("f", 76, (-1966.0, -1.0)),  # pixdim[0], of which the sign counts
        ("h", 252, (1966, 1)),  # qform_code
        ("h", 254, (-1966, 0)),
        ("h", 254, (4, 4)),
        ("B", 39, (0xFF, 0x3F)),  # dim_info
    ],
)
def test_a_kept_field_has_no_room_beside_its_meaning(
    tmp_path: Path, order: str, form: str, at: int, numbers: tuple[float, float]
) -> None:
    number, kept = numbers
    content = stored(order=order)
    struct.pack_into(order + form, content, at, number)
    (tmp_path / "x.nii").write_bytes(content)
    assert struct.unpack_from(order + form, copy_of(tmp_path / "x.nii"), at)[0] == kept


@settings(max_examples=30, deadline=None)
@given(
    shape=st.lists(st.integers(1, 5), min_size=3, max_size=4).map(tuple),
    slope=st.floats(0.125, 10, width=32),
    steps=st.tuples(*[st.floats(0.5, 9, width=32)] * 3),
    order=st.sampled_from("<>"),
)
def test_what_the_volume_means_is_unchanged(shape, slope, steps, order, tmp_path_factory) -> None:
    folder = tmp_path_factory.mktemp("nifti")
    header = nibabel.Nifti1Header(endianness=order)
    voxels = np.arange(np.prod(shape), dtype=np.int16).reshape(shape)
    image = nibabel.Nifti1Image(voxels, np.diag([*steps, 1.0]), header)
    image.header.set_slope_inter(slope, 2.0)
    image.header.set_xyzt_units("mm", "msec")
    image.set_qform(image.affine, code=1)
    (folder / "x.nii").write_bytes(image.to_bytes())
    (folder / "y.nii").write_bytes(copy_of(folder / "x.nii"))
    one, two = (nibabel.load(folder / name) for name in ("x.nii", "y.nii"))
    assert np.array_equal(one.get_fdata(), two.get_fdata())
    assert np.array_equal(one.affine, two.affine)
    assert np.array_equal(one.header["pixdim"][: len(shape) + 1], two.header["pixdim"][: len(shape) + 1])
    for name in ("dim", "qform_code", "sform_code", "xyzt_units", "dim_info", "datatype"):
        assert np.array_equal(one.header[name], two.header[name]), name
