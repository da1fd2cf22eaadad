"""Stack: frames of one sequence on a grid of parallel slices and phases."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
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
    words: tuple[Words, ...]  # of the series that form the stack
    witnesses: tuple[Witness, ...]  # for the sequence
    flags: tuple[str, ...] = ()

    @property
    def first(self) -> Image:
        return self.grid[0][0]

    @property
    def placed(self) -> bool:
        """Whether the position in the patient is known."""
        return self.first.reading is None or self.first.reading.placed

    @property
    def sure(self) -> bool:
        """Whether the meaning of all axes is known."""
        return all(image.reading is None or image.reading.sure for image in self.images())

    @property
    def ringed(self) -> bool:
        """Whether a mask of the same grid shows rings of muscle around a cavity, as short axes have."""
        return self.first.reading is not None and self.first.reading.ringed

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

    def with_spacing(self, mm: tuple[float, float, float]) -> "Stack":
        """Return the stack with other lengths of columns, rows and slices; the first pixel stays in place."""
        across, down, apart = mm
        origin = self.corner(0)
        step = self.corner(self.n_slices - 1) - origin if self.n_slices > 1 else self.normal
        unit = step / float(np.linalg.norm(step))
        grid = []
        for number, line in enumerate(self.grid):
            x, y, z = (float(value) for value in origin + unit * apart * number)
            grid.append(
                tuple(
                    replace(each, spacing=(down, across), position=(x, y, z), thickness=apart)
                    for each in line
                )
            )
        return replace(self, grid=tuple(grid))

    def without_flags(self, flags: Collection[str]) -> "Stack":
        """Return the stack without some flags."""
        return replace(self, flags=tuple(flag for flag in self.flags if flag not in flags))

    @property
    def series(self) -> list[int]:
        """Numbers of the series that form the stack."""
        return sorted({image.series_number for image in self.images()})

    @property
    def later(self) -> tuple[int, int, int]:
        """Sort key by acquisition: larger for the later of two stacks."""
        return max((image.series_number, image.acquisition, image.instance_number) for image in self.images())

    def images(self) -> Iterator[Image]:
        """Yield all frames, slice by slice."""
        for line in self.grid:
            yield from line

    def corner(self, index: int) -> Point:
        """Return the centre of a slice's first pixel."""
        return np.array(self.grid[index][0].position)

    def centre(self, index: int) -> Point:
        """Return the centre of a slice."""
        image = self.grid[index][0]
        return self.point(index, (image.columns - 1) / 2, (image.rows - 1) / 2)

    def point(self, index: int, column: float, row: float) -> Point:
        """Return the patient coordinates of a slice's pixel."""
        image = self.grid[index][0]
        along, down = np.array(image.row_direction), np.array(image.column_direction)
        return self.corner(index) + along * image.spacing[1] * column + down * image.spacing[0] * row

    @property
    def step(self) -> float:
        """Distance between slices, mm; the thickness of a single slice."""
        if self.n_slices == 1:
            return self.first.thickness if self.first.thickness and self.first.thickness > 0 else 8.0
        places = [float(self.corner(k) @ self.normal) for k in range(self.n_slices)]
        return float(np.median(np.abs(np.diff(places))))


def normal(image: Image) -> Point:
    """Return the unit normal of a frame's plane: rows x columns."""
    return np.cross(image.row_direction, image.column_direction)
