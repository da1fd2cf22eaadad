"""Changes of single elements: how texts, numbers, ids and times of headers are spoilt elsewhere."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydicom.datadict import dictionary_VR, tag_for_keyword
from pydicom.dataelem import RawDataElement
from pydicom.dataset import Dataset
from pydicom.tag import Tag

from tests.support.dicom.exam import Exam
from tests.support.dicom.general import number
from tests.support.dicom.series import CARDIAC, Image, Series, clock

_DISPLACED_MM = 3.51
_TURNED = 2e-4  # of direction cosines, at most
_DAY_S = 86_400


@dataclass(frozen=True)
class SeriesFiles:
    """Files of one series as they are about to be files."""

    exam: Exam
    series: Series
    every_series: Sequence[Series]
    datasets: list[Dataset]

    def classic(self) -> Iterator[tuple[Image, Dataset]]:
        """Yield each image with its file, where each image is one."""
        yield from zip(self.series.images, self.datasets, strict=True)


Change = Callable[[SeriesFiles], list[Dataset]]


def put_text(dataset: Dataset, keyword: str, text: bytes) -> None:
    """Set an element to bytes that no check has seen."""
    tag = Tag(tag_for_keyword(keyword) or 0)
    padded = text + b" " * (len(text) % 2)
    representation = dictionary_VR(tag)
    dataset[tag] = RawDataElement(tag, representation, len(padded), padded, 0, False, True)


def _per_image(alter: Callable[[Exam, Image, Dataset], None]) -> Change:
    def change(files: SeriesFiles) -> list[Dataset]:
        for image, dataset in files.classic():
            alter(files.exam, image, dataset)
        return files.datasets

    return change


def _per_file(alter: Callable[[Dataset], None]) -> Change:
    def change(files: SeriesFiles) -> list[Dataset]:
        for dataset in files.datasets:
            alter(dataset)
        return files.datasets

    return change


def _series_uid_per_slice(exam: Exam, image: Image, dataset: Dataset) -> None:
    dataset.SeriesInstanceUID = f"{dataset.SeriesInstanceUID[:-3]}.{image.slice + 1}"


def _series_uid_per_image(exam: Exam, image: Image, dataset: Dataset) -> None:
    dataset.SeriesInstanceUID = exam.uid("scrambled", str(dataset.SOPInstanceUID))


def _instance_numbers_repeat(exam: Exam, image: Image, dataset: Dataset) -> None:
    dataset.InstanceNumber = image.phase + 1


def _spacing_as_long_text(dataset: Dataset) -> None:
    row, column = dataset.PixelSpacing
    dataset.add_new(Tag("PixelSpacing"), "UT", f"{row:.4f}\\{column:.4f}")


def _spacing_with_decimal_commas(dataset: Dataset) -> None:
    put_text(
        dataset, "PixelSpacing", "\\".join(map(str, dataset.PixelSpacing)).replace(".", ",").encode("ascii")
    )


def _spacing_joined_by_comma(dataset: Dataset) -> None:
    put_text(dataset, "PixelSpacing", ",".join(map(str, dataset.PixelSpacing)).encode("ascii"))


def _long_decimals(dataset: Dataset) -> None:
    for keyword in ("PixelSpacing", "ImagePositionPatient", "ImageOrientationPatient"):
        values = [float(value) for value in dataset[keyword].value]
        put_text(dataset, keyword, "\\".join(f"{value:.20f}" for value in values).encode("ascii"))


def _position_in_private_sequence(dataset: Dataset) -> None:
    item = Dataset()
    item.ImagePositionPatient = dataset.ImagePositionPatient
    del dataset.ImagePositionPatient
    dataset.private_block(0x2005, "Philips MR Imaging DD 004", create=True).add_new(0x0F, "SQ", [item])


def _private_elements_unknown(dataset: Dataset) -> None:
    """Turn private values into bytes without a representation, as little-endian files hold them."""
    for element in [each for each in dataset if each.tag.is_private and not each.tag.is_private_creator]:
        dataset.add_new(element.tag, "UN", _stored_bytes(element.VR, element.value))


def _stored_bytes(representation: str, value: Any) -> bytes:
    kinds = {"FL": "<f4", "SS": "<i2", "SL": "<i4"}
    if representation in kinds:
        return np.array([value], kinds[representation]).tobytes()
    text = value if isinstance(value, bytes) else str(value).encode("latin-1", "replace")
    return text + b" " * (len(text) % 2)


def _huge_series_numbers(dataset: Dataset) -> None:
    put_text(dataset, "SeriesNumber", f"4561151171121051{int(dataset.SeriesNumber):05d}".encode("ascii"))


def _fractions_in_integers(dataset: Dataset) -> None:
    put_text(dataset, "InstanceNumber", f"{int(dataset.InstanceNumber)}.0".encode("ascii"))
    put_text(dataset, "HeartRate", b"71.4")
    put_text(dataset, "NominalInterval", b"840.3")


def _character_set_not_supplied(dataset: Dataset) -> None:
    put_text(dataset, "SpecificCharacterSet", b"Not Supplied")


def _cyrillic_descriptions(dataset: Dataset) -> None:
    text = str(dataset.get("SeriesDescription", ""))
    put_text(dataset, "SpecificCharacterSet", b"ISO 2022 IR 6\\IS")
    put_text(dataset, "SeriesDescription", f"Сердце {text}".encode("cp1251"))


def _odd_phases_displaced(exam: Exam, image: Image, dataset: Dataset) -> None:
    if image.phase % 2:
        cosines = np.array([float(value) for value in dataset.ImageOrientationPatient])
        place = np.array([float(value) for value in dataset.ImagePositionPatient])
        place = place + _DISPLACED_MM * np.cross(cosines[:3], cosines[3:])
        dataset.ImagePositionPatient = [number(float(part), 4) for part in place]


def _times_scrambled(exam: Exam, image: Image, dataset: Dataset) -> None:
    draw = exam.drawn("scrambled", str(dataset.SOPInstanceUID))
    for keyword in ("AcquisitionTime", "ContentTime"):
        setattr(dataset, keyword, clock("000000", draw.unit() * _DAY_S))


def _content_time_tells_phases(exam: Exam, image: Image, dataset: Dataset) -> None:
    beat_s = image.hold.rr_ms / 1000
    seconds = image.phase * beat_s / (image.stack.phases if image.stack.kind in CARDIAC else 1)
    dataset.ContentTime = clock(exam.identity.study_time, image.hold.start_s + seconds)


def _directions_differ_a_little(exam: Exam, image: Image, dataset: Dataset) -> None:
    draw = exam.drawn("directions", image.stack.name, image.slice)
    cosines = [float(value) + draw.between(-_TURNED, _TURNED) for value in dataset.ImageOrientationPatient]
    dataset.ImageOrientationPatient = [number(value, 6) for value in cosines]


def _negative_spacing(dataset: Dataset) -> None:
    if "SpacingBetweenSlices" in dataset:
        dataset.SpacingBetweenSlices = number(-float(dataset.SpacingBetweenSlices), 4)


def _mosaic_in_type(dataset: Dataset) -> None:
    dataset.ImageType = [*dataset.ImageType, "MOSAIC"]
    for group in dataset.PerFrameFunctionalGroupsSequence:
        [kind] = group.MRImageFrameTypeSequence
        kind.FrameType = [*kind.FrameType, "MOSAIC"]


def _no_dimensions(dataset: Dataset) -> None:
    for keyword in ("DimensionOrganizationSequence", "DimensionIndexSequence"):
        delattr(dataset, keyword)
    for group in dataset.PerFrameFunctionalGroupsSequence:
        [content] = group.FrameContentSequence
        for keyword in ("StackID", "InStackPositionNumber", "TemporalPositionIndex", "DimensionIndexValues"):
            delattr(content, keyword)


def _acquisition_in_one_series(files: SeriesFiles) -> list[Dataset]:
    """Give all slices of an acquisition the id, number and name of its first series."""
    name = files.series.images[0].stack.name
    alike = [series for series in files.every_series if series.images[0].stack.name == name]
    before = sum(len(series.images) for series in alike[: alike.index(files.series)])
    for place, dataset in enumerate(files.datasets):
        dataset.SeriesInstanceUID = files.exam.uid("series", alike[0].number)
        dataset.SeriesNumber = alike[0].number
        dataset.InstanceNumber = before + place + 1
    return files.datasets


def _map_among_its_images(files: SeriesFiles) -> list[Dataset]:
    """Give a map of T1 the id and number of the series of its raw images."""
    if files.series.kind != "t1_map":
        return files.datasets
    [raw] = [series for series in files.every_series if series.kind == "t1_raw"]
    for place, dataset in enumerate(files.datasets):
        dataset.SeriesInstanceUID, dataset.SeriesNumber = files.exam.uid("series", raw.number), raw.number
        dataset.InstanceNumber = len(raw.images) + place + 1
    return files.datasets


_PER_IMAGE = (
    *(_series_uid_per_slice, _series_uid_per_image, _instance_numbers_repeat, _odd_phases_displaced),
    *(_times_scrambled, _content_time_tells_phases, _directions_differ_a_little),
)
_PER_FILE = (
    *(_spacing_as_long_text, _spacing_with_decimal_commas, _spacing_joined_by_comma, _long_decimals),
    *(_position_in_private_sequence, _private_elements_unknown, _huge_series_numbers, _no_dimensions),
    *(_fractions_in_integers, _character_set_not_supplied, _cyrillic_descriptions, _negative_spacing),
    _mosaic_in_type,
)
HEADER_CHANGES: Mapping[str, Change] = {
    **{alter.__name__[1:]: _per_image(alter) for alter in _PER_IMAGE},
    **{alter.__name__[1:]: _per_file(alter) for alter in _PER_FILE},
    **{change.__name__[1:]: change for change in (_acquisition_in_one_series, _map_among_its_images)},
}
