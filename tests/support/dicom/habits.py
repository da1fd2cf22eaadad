"""Habits of other makers, sites, archives and anonymisers: what each changes in an exam, with its source."""

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import ConfigDict, TypeAdapter
from pydicom.dataset import Dataset

from tests.support.dicom.exam import Exam
from tests.support.dicom.file_changes import FILE_CHANGES
from tests.support.dicom.header_changes import HEADER_CHANGES, SeriesFiles
from tests.support.dicom.image_losses import IMAGE_LOSSES
from tests.support.dicom.series import Series
from tests.support.dicom.spec import TransferSyntax, Vendor

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
        if self.kinds and series.kind not in self.kinds:
            return [copy.deepcopy(dataset) for dataset in datasets]
        made = [copy.deepcopy(dataset) for dataset in datasets]
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
