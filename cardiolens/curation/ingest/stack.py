"""A stack: frames of one sequence on a grid of parallel slices and phases."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardiolens.curation.ingest.evidence import Witness
from cardiolens.curation.ingest.image import Image
from cardiolens.curation.ingest.words import Words

Point = NDArray[Any]  # three coordinates or components


@dataclass(frozen=True, slots=True)
class Stack:
    """Frames by slice along the normal, then by phase. Positions are DICOM's (left, back, head; mm)."""

    grid: tuple[tuple[Image, ...], ...]
    words: tuple[Words, ...]  # of the series that it is made of
    witnesses: tuple[Witness, ...]  # of its sequence
    flags: tuple[str, ...] = ()

    @property
    def first(self) -> Image:
        return self.grid[0][0]

    @property
    def placed(self) -> bool:
        """Whether it is known where it lies in the patient."""
        return self.first.reading is None or self.first.reading.placed

    @property
    def sure(self) -> bool:
        """Whether it is known which of its axes are which."""
        return all(image.reading is None or image.reading.sure for image in self.images())

    @property
    def n_slices(self) -> int:
        return len(self.grid)

    @property
    def n_phases(self) -> int:
        return len(self.grid[0])

    @property
    def normal(self) -> Point:
        """Unit normal: rows x columns."""
        return normal(self.first)

    @property
    def series(self) -> list[int]:
        """Numbers of the series that it is made of."""
        return sorted({image.series_number for image in self.images()})

    @property
    def later(self) -> tuple[int, int, int]:
        """By which the later of two acquisitions is told."""
        return max((image.series_number, image.acquisition, image.instance_number) for image in self.images())

    def images(self) -> Iterator[Image]:
        """All frames, slice by slice."""
        for line in self.grid:
            yield from line

    def corner(self, index: int) -> Point:
        """Centre of the first pixel of a slice."""
        return np.array(self.grid[index][0].position)

    def centre(self, index: int) -> Point:
        """Centre of the picture of a slice."""
        image = self.grid[index][0]
        return self.point(index, (image.columns - 1) / 2, (image.rows - 1) / 2)

    def point(self, index: int, column: float, row: float) -> Point:
        """Position of a pixel of a slice in the patient."""
        image = self.grid[index][0]
        along, down = np.array(image.row_direction), np.array(image.column_direction)
        return self.corner(index) + along * image.spacing[1] * column + down * image.spacing[0] * row

    @property
    def step(self) -> float:
        """Distance between slices, mm; of a single slice its thickness."""
        if self.n_slices == 1:
            return self.first.thickness if self.first.thickness and self.first.thickness > 0 else 8.0
        places = [float(self.corner(k) @ self.normal) for k in range(self.n_slices)]
        return float(np.median(np.abs(np.diff(places))))


def normal(image: Image) -> Point:
    """Unit normal of a frame's plane: rows x columns."""
    return np.cross(image.row_direction, image.column_direction)
