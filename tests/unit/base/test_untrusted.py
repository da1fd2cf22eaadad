"""Readers of what strangers made: a value or a named error for any bytes, never more than the bound."""

import gzip
import zlib
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydicom import dcmread
from pydicom.data import get_testdata_file

from cardiolens.base.untrusted import csv_file, dicom_file, gzip_stream, image_file, yaml_file
from cardiolens.base.untrusted.bounded_files import parse_json
from cardiolens.base.untrusted.gzip_stream import DamagedError, TooLargeError, TruncatedError

MIB = 1 << 20
SMALL = settings(max_examples=150, deadline=None)


def zeros(n_mib: int, wbits: int = 31) -> bytes:
    packer = zlib.compressobj(9, wbits=wbits)
    return b"".join([*(packer.compress(bytes(MIB)) for _ in range(n_mib)), packer.flush()])


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """Bytes with some replaced, and perhaps cut."""
    content = bytearray(whole)
    for _ in range(draw(st.integers(0, 8))):
        content[draw(st.integers(0, len(content) - 1))] = draw(st.integers(0, 255))
    return bytes(content[: draw(st.integers(0, len(content)))])


@SMALL
@given(
    content=st.binary(max_size=500),
    wanted=st.integers(0, 600),
    spare=st.integers(0, 600),
    parts=st.integers(1, 3),
)
def test_gzip_gives_what_was_packed_or_refuses(content, wanted, spare, parts) -> None:
    cuts = [len(content) * at // parts for at in range(parts + 1)]
    packed = b"".join(gzip.compress(content[a:b]) for a, b in pairwise(cuts))
    try:
        assert gzip_stream.unpacked(packed, wanted, spare) == content[:wanted]
    except TooLargeError:
        assert len(content) > wanted + spare


@SMALL
@given(stored=damaged(gzip.compress(bytes(range(256)) * 40)))
def test_damaged_gzip_is_refused_by_one_of_three_names(stored) -> None:
    for read in (
        lambda: gzip_stream.unpacked(stored, 20_000, 100),
        lambda: gzip_stream.start_of(stored, 300),
    ):
        with suppress(DamagedError, TruncatedError, TooLargeError):
            read()


def test_a_deflated_bomb_is_refused_at_its_bound() -> None:
    with pytest.raises(TooLargeError):
        gzip_stream.raw_unpacked(zeros(8, wbits=-15), 4 * MIB)
    assert len(gzip_stream.raw_unpacked(zeros(4, wbits=-15), 4 * MIB)) == 4 * MIB
    with pytest.raises((TruncatedError, DamagedError)):
        gzip_stream.raw_unpacked(zeros(4, wbits=-15)[:-9], 8 * MIB)


@pytest.mark.parametrize("name", ["CT_small.dcm", "MR_small.dcm", "image_dfl.dcm", "MR_small_RLE.dcm"])
def test_files_as_others_wrote_them_are_read_as_pydicom_reads_them(name: str, tmp_path: Path) -> None:
    path = get_testdata_file(name, download=False)
    ours, theirs = dicom_file.read(Path(path), pixels=True), dcmread(path, force=True)
    assert ours == theirs or ours.PatientID == theirs.PatientID
    assert (dicom_file.frames_of(ours) == theirs.pixel_array).all()
    assert "PixelData" not in dicom_file.read(Path(path), pixels=False)


@SMALL
@given(stored=st.binary(max_size=300) | damaged(Path(get_testdata_file("MR_small.dcm")).read_bytes()[:3000]))
def test_a_transfer_syntax_is_found_or_not_in_any_bytes(stored) -> None:
    syntax, end = dicom_file._transfer_syntax(stored, 132)
    assert end >= 132
    assert isinstance(syntax, str)


@SMALL
@given(text=st.text(max_size=200))
def test_any_text_is_a_value_or_a_value_error(text) -> None:
    for read in (parse_json, yaml_file.parse_yaml, csv_file.parse_rows):
        with suppress(ValueError):
            read(text)


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [*a]",
        "a: &a [x]\n"
        + "".join(f"b{n}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 20)}]\n" for n in range(9)),
        "[" * 100_000,
        "!!python/object/apply:os.system [true]",
    ],
    ids=["itself", "aliases", "deep", "code"],
)
def test_yaml_that_means_harm_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"aliases|deeply|not YAML"):
        yaml_file.parse_yaml(text)


@SMALL
@given(stored=st.binary(max_size=300))
def test_bytes_that_are_no_picture_are_refused(stored) -> None:
    with pytest.raises(ValueError, match=r"image|decoded|megapixels"), image_file.opened(stored) as image:
        image.load()
