"""Changes of whole files: copies, losses, tiles, frames taken apart, objects that are no images."""

import copy
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby

import numpy as np
from pydicom.dataset import Dataset

from tests.support.dicom.general import CLASSIC, number
from tests.support.dicom.header_changes import Change, SeriesFiles

_COPIED, _LOST_OF = 3, 40  # one file of so many
_FACTORS = (1, 2, 3)  # of stored values, frame by frame
_OTHER_OBJECTS = (  # exam card, spectrum, raw data, presentation state
    "1.3.46.670589.11.0.0.12.4",
    "1.3.46.670589.11.0.0.12.1",
    "1.2.840.10008.5.1.4.1.1.66",
    "1.2.840.10008.5.1.4.1.1.11.1",
)
_OF_IMAGES = ("PixelData", "Rows", "Columns", "BitsAllocated", "BitsStored", "HighBit", "SamplesPerPixel")


def _copies_of_files(files: SeriesFiles) -> list[Dataset]:
    return [*files.datasets, *map(copy.deepcopy, files.datasets[::_COPIED])]


def _images_lost(files: SeriesFiles) -> list[Dataset]:
    return [dataset for place, dataset in enumerate(files.datasets) if place % _LOST_OF != _LOST_OF // 2]


def _mosaic(files: SeriesFiles) -> list[Dataset]:
    """Return a file a phase, with all slices of a series as tiles."""
    images = sorted(files.classic(), key=lambda pair: (pair[0].phase, pair[0].slice))
    tiled = []
    for _, phase in groupby(images, key=lambda pair: pair[0].phase):
        datasets = [dataset for _, dataset in phase]
        side = int(np.ceil(np.sqrt(len(datasets))))
        first = datasets[0]
        rows, columns = int(first.Rows), int(first.Columns)
        tiles = np.zeros((side * rows, side * columns), np.uint16)
        for place, dataset in enumerate(datasets):
            row, column = divmod(place, side)
            tile = np.frombuffer(dataset.PixelData, "<u2").reshape(rows, columns)
            tiles[row * rows : (row + 1) * rows, column * columns : (column + 1) * columns] = tile
        first.Rows, first.Columns = tiles.shape
        first.ImageType = [*first.ImageType, "MOSAIC"]
        first.add_new(0x7FE00010, "OW", tiles.astype("<u2").tobytes())
        tiled.append(first)
    return tiled


def _frames(dataset: Dataset) -> Iterator[tuple[int, Dataset, bytes]]:
    """Yield number, functional groups and pixels of each frame."""
    size = int(dataset.Rows) * int(dataset.Columns) * int(dataset.BitsAllocated) // 8
    for place, group in enumerate(dataset.PerFrameFunctionalGroupsSequence):
        yield place, group, dataset.PixelData[place * size : (place + 1) * size]


def _taken_apart(files: SeriesFiles, fill: Callable[[Dataset, Dataset, Dataset], None]) -> list[Dataset]:
    """Return a file a frame; `fill` gives it what it has of the whole file and of its functional groups."""
    single = []
    for dataset in files.datasets:
        for place, group, pixels in _frames(dataset):
            part = _without_frames(dataset)
            fill(part, dataset, group)
            part.InstanceNumber = place + 1
            part.SOPInstanceUID = files.exam.uid("frame", str(dataset.SOPInstanceUID), place)
            part.add_new(0x7FE00010, "OW", pixels)
            single.append(part)
    return single


def _frame_per_file(files: SeriesFiles) -> list[Dataset]:
    def fill(part: Dataset, dataset: Dataset, group: Dataset) -> None:
        part.PerFrameFunctionalGroupsSequence = [copy.deepcopy(group)]
        part.SharedFunctionalGroupsSequence = copy.deepcopy(dataset.SharedFunctionalGroupsSequence)
        part.NumberOfFrames = 1

    return _taken_apart(files, fill)


def _single_frames(files: SeriesFiles) -> list[Dataset]:
    """Return classic files: the elements of all functional groups at the top."""

    def fill(part: Dataset, dataset: Dataset, group: Dataset) -> None:
        for name in ("NumberOfFrames", "DimensionOrganizationSequence", "DimensionIndexSequence"):
            delattr(part, name)
        for element in [*dataset.SharedFunctionalGroupsSequence[0], *group]:
            for inner in element.value[0]:
                part[inner.tag] = copy.deepcopy(inner)
        if "FrameType" in part:
            part.ImageType = part.FrameType
        part.SOPClassUID = CLASSIC

    return _taken_apart(files, fill)


def _without_frames(dataset: Dataset) -> Dataset:
    frames = ("PixelData", "PerFrameFunctionalGroupsSequence", "SharedFunctionalGroupsSequence")
    part = Dataset()
    for element in dataset:
        if element.keyword not in frames:
            part[element.tag] = copy.deepcopy(element)
    return part


def _slope_per_frame(files: SeriesFiles) -> list[Dataset]:
    """Multiply stored values frame by frame, and let the rescale slope undo it."""
    for dataset in files.datasets:
        for element in [each for each in dataset if each.tag.group == 0x2005]:
            del dataset[element.tag]
        dataset.BitsStored, dataset.HighBit = 16, 15
        pixels = []
        for place, group, stored in _frames(dataset):
            factor = _FACTORS[place % len(_FACTORS)]
            pixels.append((np.frombuffer(stored, "<u2") * factor).astype("<u2").tobytes())
            [scaled] = group.PixelValueTransformationSequence
            scaled.RescaleSlope = number(float(scaled.RescaleSlope) / factor, 8)
        dataset.add_new(0x7FE00010, "OW", b"".join(pixels))
    return files.datasets


def _other_objects_beside(files: SeriesFiles) -> list[Dataset]:
    beside = []
    for kind in _OTHER_OBJECTS:
        other = copy.deepcopy(files.datasets[0])
        for keyword in _OF_IMAGES:
            delattr(other, keyword)
        other.SOPClassUID, other.SOPInstanceUID = (
            kind,
            files.exam.uid("beside", kind, files.series.number),
        )
        beside.append(other)
    return [*files.datasets, *beside]


_CHANGES = (
    *(_copies_of_files, _images_lost, _mosaic, _frame_per_file, _single_frames, _slope_per_frame),
    _other_objects_beside,
)
FILE_CHANGES: Mapping[str, Change] = {change.__name__[1:]: change for change in _CHANGES}
