"""De-identification: the list of elements, bands of age, makers, ids."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydicom.datadict import tag_for_keyword

from cardiolens.base.paths import PACKAGE
from cardiolens.curation.ingest.dicom import read_images
from cardiolens.curation.ingest.frame_records import Identity, Person
from cardiolens.curation.ingest.ids import (
    PASSES,
    Pseudonyms,
    age_band,
    sex,
    tesla,
    vendor,
)
from cardiolens.curation.ingest.pixels import pixels_of
from tests.unit.curation.ingest.exports import header, save

KEY = bytes(32)


def test_the_page_lists_what_passes():
    page = (PACKAGE.parent / "docs" / "guides" / "import.md").read_text()
    table = page.split("## Identities")[1].split("All else")[0]
    assert {name for name in re.findall(r"[A-Z]\w+", table) if tag_for_keyword(name)} == set(PASSES)


@given(st.integers(0, 120))
def test_an_age_becomes_a_band_around_it(years):
    band = age_band(Person(age=f"{years:03d}Y"))
    assert band is not None
    low, _, high = band.rstrip("+").partition("-")
    assert int(low) <= years <= int(high or 999)
    assert band.endswith("+") == (years >= 90)


@pytest.mark.parametrize(("age", "band"), [("003M", "0-9"), ("", None), ("abc", None), ("12", None)])
def test_odd_ages(age, band):
    assert age_band(Person(age=age)) == band


@pytest.mark.parametrize(
    ("manufacturer", "name"),
    [
        ("SIEMENS", "Siemens"),
        ("Siemens Healthineers", "Siemens"),
        ("GE MEDICAL SYSTEMS", "GE"),
        ("Philips Medical Systems", "Philips"),
        ("UIH", "United Imaging"),
        ("Dr. DOE's own", None),
    ],
)
def test_makers_are_of_a_closed_list(manufacturer, name):
    assert vendor(Person(manufacturer=manufacturer)) == name


def test_sex_and_field():
    assert [sex(Person(sex=text)) for text in ("F", "m", "O", "")] == ["female", "male", "other", None]
    assert [tesla(Person(tesla=field)) for field in (1.494, 15000, 0, None)] == [1.5, 1.5, None, None]


texts = st.text(max_size=20)


@given(texts, texts, texts)
def test_ids_hide_what_they_stand_for_and_depend_on_the_key(patient, study, name):
    identity = Identity(patient, study, "", "")
    names, others = Pseudonyms(KEY), Pseudonyms(b"\1" * 32)
    ids = [names.patient(identity), names.study(identity), names.file(name)]
    assert all(re.fullmatch(r"[PSF][0-9a-f]{16}", each) for each in ids)
    assert ids == [names.patient(identity), names.study(identity), names.file(name)]
    assert not set(ids) & {others.patient(identity), others.study(identity), others.file(name)}


def test_bits_above_the_stored_ones_are_cut_off(tmp_path):
    """Old overlays there may hold a name."""
    values = np.arange(1024, dtype=np.uint16)
    [image] = read_images(save(header(PixelData=(values | 0xB000).tobytes()), tmp_path / "IM"))
    assert np.array_equal(pixels_of(image).ravel(), values)
