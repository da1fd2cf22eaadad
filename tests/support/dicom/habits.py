"""Habits of other makers, sites, archives and anonymisers: what each changes in an exam, with its source."""

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import ConfigDict, TypeAdapter
from pydicom.dataset import Dataset

from tests.support.dicom.exam import Exam, TransferSyntax, Vendor
from tests.support.dicom.file_changes import FILE_CHANGES
from tests.support.dicom.header_changes import HEADER_CHANGES, Change, SeriesFiles
from tests.support.dicom.series import Image, Series

_STOPPED = 0.04  # share of a series that a transfer did not bring
_APART = 3  # phases between what two neighbouring slices lose


def _middle_phase(image: Image) -> bool:
    return image.phase == image.stack.phases // 2


def _middle_slice(image: Image, count: int = 1) -> bool:
    middle = len(image.stack.planes) // 2
    return len(image.stack.planes) > 4 and image.slice in range(middle, middle + count)


_LOST: Mapping[str, Callable[[Image], bool]] = {
    "phase_lost": _middle_phase,
    "first_phase_lost": lambda image: image.phase == 0,
    "last_phase_lost": lambda image: image.phase == image.stack.phases - 1,
    "phase_of_a_slice_lost": lambda image: _middle_phase(image) and image.slice == 1,
    "another_phase_of_each_slice_lost": (
        lambda image: image.phase == (2 + _APART * image.slice) % image.stack.phases
    ),
    "slice_lost": _middle_slice,
    "two_slices_lost": lambda image: _middle_slice(image, 2),
    "last_slice_lost": lambda image: image.slice == len(image.stack.planes) - 1 > 3,
    "every_second_slice_lost": lambda image: len(image.stack.planes) > 4 and image.slice % 2 == 1,
}


def _without(is_lost: Callable[[Image], bool]) -> Change:
    def change(files: SeriesFiles) -> list[Dataset]:
        if files.exam.dialect.multiframe:
            return [_fewer_frames(files, dataset, is_lost) for dataset in files.datasets]
        return [dataset for image, dataset in files.classic() if not is_lost(image)]

    return change


def _fewer_frames(files: SeriesFiles, dataset: Dataset, is_lost: Callable[[Image], bool]) -> Dataset:
    size = int(dataset.Rows) * int(dataset.Columns) * int(dataset.BitsAllocated) // 8
    groups, pixels = list(dataset.PerFrameFunctionalGroupsSequence), dataset.PixelData
    places = [place for place, image in enumerate(files.series.images) if not is_lost(image)]
    dataset.PerFrameFunctionalGroupsSequence = [groups[place] for place in places]
    dataset.NumberOfFrames = len(places)
    dataset.add_new(0x7FE00010, "OW", b"".join(pixels[place * size : (place + 1) * size] for place in places))
    return dataset


def _transfer_stopped(files: SeriesFiles) -> list[Dataset]:
    return files.datasets[: len(files.datasets) - int(len(files.datasets) * _STOPPED)]


def _renumbered(files: SeriesFiles) -> list[Dataset]:
    """Number the images and their temporal positions anew, and tell no longer how many there were."""
    uids = {str(dataset.SOPInstanceUID) for dataset in files.datasets}
    images = [image for place, image in enumerate(files.series.images) if _uid(files, place) in uids]
    positions = {phase: rank + 1 for rank, phase in enumerate(sorted({image.phase for image in images}))}
    for place, (image, dataset) in enumerate(zip(images, files.datasets, strict=True)):
        dataset.InstanceNumber = place + 1
        if "TemporalPositionIdentifier" in dataset:
            dataset.TemporalPositionIdentifier = positions[image.phase]
        for keyword in ("NumberOfTemporalPositions", "CardiacNumberOfImages", "ImagesInAcquisition"):
            if keyword in dataset:
                delattr(dataset, keyword)
    return files.datasets


def _uid(files: SeriesFiles, place: int) -> str:
    return files.exam.uid("image", files.series.number, place)


def _again(files: SeriesFiles, *, every_slice: bool) -> list[Dataset]:
    """Store the middle phase of a slice, or of all, twice, the second under another id and number."""
    datasets = list(files.datasets)
    for image, dataset in files.classic():
        if _middle_phase(image) and (every_slice or image.slice == 0):
            second = copy.deepcopy(dataset)
            second.SOPInstanceUID = files.exam.uid("again", str(dataset.SOPInstanceUID))
            second.InstanceNumber = len(datasets) + 1
            datasets.append(second)
    return datasets


def _in_anothers_place(files: SeriesFiles) -> list[Dataset]:
    """Give the middle phase of every slice the pixels of the phase before it."""
    pixels = {
        (image.stack.name, image.slice, image.phase): dataset.PixelData for image, dataset in files.classic()
    }
    for image, dataset in files.classic():
        if _middle_phase(image) and image.phase:
            before = pixels[image.stack.name, image.slice, image.phase - 1]
            dataset.add_new(0x7FE00010, "OW", before)
    return files.datasets


IMAGE_LOSSES: Mapping[str, Change] = {
    **{name: _without(is_lost) for name, is_lost in _LOST.items()},
    "transfer_stopped": _transfer_stopped,
    "renumbered": _renumbered,
    "frame_again": lambda files: _again(files, every_slice=False),
    "frame_of_every_slice_again": lambda files: _again(files, every_slice=True),
    "frame_in_anothers_place": _in_anothers_place,
}


_DATA = Path(__file__).parent / "data" / "habits.yaml"
CHANGES = {**HEADER_CHANGES, **FILE_CHANGES, **IMAGE_LOSSES}


@dataclass(frozen=True)
class Habit:
    """What somebody does to the exams of one vendor."""

    vendor: Vendor
    seen: str  # where
    what: str
    kinds: tuple[str, ...] = ()  # of acquisitions that it touches; empty: all
    write: Mapping[str, Any] = field(default_factory=dict, hash=False)  # values by keyword
    remove: tuple[str, ...] = ()  # keywords
    changes: tuple[str, ...] = ()
    syntax: TransferSyntax | None = None  # None: as the export says
    bare: bool = False  # files without preamble and meta information

    __pydantic_config__ = ConfigDict(extra="forbid")

    def changed(
        self, exam: Exam, series: Series, every_series: Sequence[Series], datasets: Iterable[Dataset]
    ) -> list[Dataset]:
        """Return the datasets of a series as they are handed on: more, fewer or others."""
        made = [copy.deepcopy(dataset) for dataset in datasets]
        if self.kinds and series.kind not in self.kinds:
            return made
        for dataset in made:
            for keyword, value in self.write.items():
                if keyword in dataset:
                    setattr(dataset, keyword, value)
            for keyword in self.remove:
                if keyword in dataset:
                    delattr(dataset, keyword)
        files = SeriesFiles(exam, series, every_series, made)
        for name in self.changes:
            files = SeriesFiles(exam, series, every_series, CHANGES[name](files))
        return files.datasets


@cache
def habits() -> Mapping[str, Habit]:
    """Load all habits by name."""
    tree = yaml.safe_load(_DATA.read_text(encoding="utf-8"))
    return TypeAdapter(dict[str, Habit]).validate_python(tree)
