"""Readers of what strangers made: a value or a named error for any bytes, never more than the bound."""

import gzip
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydicom import dcmread
from pydicom.data import get_testdata_file

from cardiolens.base.untrusted import csv_file, dicom_file, gzip_stream, image_file
from cardiolens.base.untrusted.bounded_files import parse_json, parse_yaml
from cardiolens.base.untrusted.gzip_stream import GzipError

SMALL = settings(max_examples=150, deadline=None)


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
    if len(content) <= wanted + spare:
        assert gzip_stream.unpacked(packed, wanted, spare) == content[:wanted]
    else:
        with pytest.raises(GzipError, match="MiB more than the"):
            gzip_stream.unpacked(packed, wanted, spare)


@SMALL
@given(stored=damaged(gzip.compress(bytes(range(256)) * 40)))
def test_damaged_gzip_is_refused_by_name(stored) -> None:
    for read in (
        lambda: gzip_stream.unpacked(stored, 20_000, 100),
        lambda: gzip_stream.start_of(stored, 300),
    ):
        with suppress(GzipError):
            read()


def test_a_file_that_is_deflated_as_a_whole_is_refused() -> None:
    with pytest.raises(dicom_file.DeflatedError):
        dicom_file.read(Path(str(get_testdata_file("image_dfl.dcm"))), pixels=False)


@pytest.mark.parametrize("name", ["CT_small.dcm", "MR_small.dcm", "MR_small_RLE.dcm"])
def test_files_as_others_wrote_them_are_read_as_pydicom_reads_them(name: str, tmp_path: Path) -> None:
    path = get_testdata_file(name, download=False)
    ours, theirs = dicom_file.read(Path(path), pixels=True), dcmread(path, force=True)
    assert ours == theirs or ours.PatientID == theirs.PatientID
    assert (dicom_file.frames_of(ours) == theirs.pixel_array).all()
    assert "PixelData" not in dicom_file.read(Path(path), pixels=False)


@SMALL
@given(text=st.text(max_size=200))
def test_any_text_is_a_value_or_a_value_error(text) -> None:
    for read in (parse_json, parse_yaml, csv_file.parse_rows):
        with suppress(ValueError):
            read(text)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a,b\n1,no scar, no oedema\n", "more cells than columns"),
        ("a,a\n1,2\n", "twice"),
        ('a,b\n1,"2\n3,4\n', "not CSV"),
    ],
)
def test_a_table_of_which_a_part_would_be_lost_is_refused(text: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        csv_file.parse_rows(text)
    assert csv_file.parse_rows(f"a,b\n1,{'2' * 200_000},\n3\n")[1] == {"a": "3", "b": None}


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
        parse_yaml(text)


@SMALL
@given(stored=st.binary(max_size=300))
def test_bytes_that_are_no_picture_are_refused(stored) -> None:
    with pytest.raises(ValueError, match=r"image|decoded|megapixels"), image_file.opened(stored) as image:
        image.load()
