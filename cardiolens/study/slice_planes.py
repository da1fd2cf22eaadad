"""Where displayed slices lie in the patient: reference lines of one on another, and slices at one level.

Positions come from the affines of a study's files. Where an affine cannot be believed, a volume has
no planes but a reason, so that no line is drawn where it may be wrong.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cardiolens.base.errors import InputError
from cardiolens.study.manifest import Study
from cardiolens.study.orientation import Point, StudyOrientation, VolumePlacement
from cardiolens.study.volume_manifest import VolumeManifest

_PARALLEL_DEG = 15.0  # planes that meet at a smaller angle have one level and no reference line

Segment = tuple[float, float, float, float]  # x and y of both ends, in pixels; a pixel's centre is whole


@dataclass(frozen=True, slots=True)
class SlicePlane:
    """A displayed slice in the patient (left, back, head; mm)."""

    corner: Point  # centre of the first pixel of the first row
    right: Point  # from a column to the next
    down: Point  # from a row to the next
    height: int
    width: int

    @property
    def normal(self) -> Point:
        """Unit normal; its sign means nothing."""
        normal: Point = np.cross(self.right, self.down)
        unit: Point = normal / np.linalg.norm(normal)
        return unit

    @property
    def centre(self) -> Point:
        """The middle of the picture."""
        middle: Point = self.corner + (self.width - 1) / 2 * self.right + (self.height - 1) / 2 * self.down
        return middle

    def angle(self, plane: "SlicePlane") -> float:
        """Return the angle of two planes in degrees, 0 to 90."""
        return math.degrees(math.acos(min(1.0, abs(float(self.normal @ plane.normal)))))


@dataclass(frozen=True, slots=True)
class PlacedVolume:
    """The planes of a volume's slices in canonical order, and the distance from slice to slice."""

    planes: tuple[SlicePlane, ...]
    step_mm: float


def placed_volumes(
    study: Study, rows: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, PlacedVolume], dict[str, str]]:
    """Return the volumes with a known place in the patient, and for the others the reason, by volume_id.

    `rows` are the study's rows of `volumes`.
    """
    orientation = StudyOrientation(study)
    manifests = {manifest.volume_id: manifest for manifest in study.manifest.volumes}
    located: dict[str, PlacedVolume] = {}
    reasons: dict[str, str] = {}
    for row in rows:
        name = row["volume_id"]
        try:
            if name not in manifests:
                raise InputError("study.json no longer names it")
            if orientation.contradicts(manifests[name]):
                raise InputError("its header contradicts the way it is displayed")
            located[name] = _locate(manifests[name], orientation.placements.get(name), row)
        except InputError as error:
            reasons[name] = str(error)
    return located, reasons


def _locate(
    manifest: VolumeManifest, placement: VolumePlacement | None, row: Mapping[str, Any]
) -> PlacedVolume:
    """Return the planes of a volume; InputError with the reason where its affine cannot be believed."""
    if placement is None:
        raise InputError("its header gives no orientation")
    if placement.aligned:
        raise InputError("its header has the scanner's own axes, like that of a converter that lost them")
    unconfirmed = manifest.model_copy(update={"confirmed": ()})
    unconfirmed.check_header(placement.header, slices_alone=row["n_slices"] > 1)
    transform = manifest.display_transform
    i_axis, j_axis, step = placement.affine[:3, :3].T
    down, right = (j_axis, i_axis) if transform.transpose else (i_axis, j_axis)
    corner, (height, width) = placement.affine[:3, 3], (row["height"], row["width"])
    if transform.flip_rows:
        corner, down = corner + (height - 1) * down, -down
    if transform.flip_cols:
        corner, right = corner + (width - 1) * right, -right
    stored = range(row["n_slices"])
    planes = (
        SlicePlane(corner + number * step, right, down, height, width)
        for number in (reversed(stored) if manifest.apex_first else stored)
    )
    return PlacedVolume(tuple(planes), manifest.spacing_mm[2])


def reference_line(target: SlicePlane, cutting: SlicePlane) -> Segment | None:
    """Return the line where another slice cuts a shown one, inside both pictures; None if there is none."""
    if target.angle(cutting) < _PARALLEL_DEG:
        return None
    normal = cutting.normal
    across, along = float(normal @ target.right), float(normal @ target.down)
    offset = float(normal @ (target.corner - cutting.corner))
    # The line is where across * x + along * y + offset = 0: its point nearest the corner, and its direction.
    square = across * across + along * along
    start, direction = np.array([-across, -along]) * offset / square, np.array([-along, across])
    span = _clipped(_bounds(target, cutting, start, direction))
    if span is None:
        return None
    (x1, y1), (x2, y2) = (start + t * direction for t in span)
    return float(x1), float(y1), float(x2), float(y2)


def _bounds(
    target: SlicePlane, cutting: SlicePlane, start: Point, direction: Point
) -> Iterator[tuple[float, float, int]]:
    """Yield position at 0, change per unit and number of pixels, along the axes of both pictures."""
    yield float(start[0]), float(direction[0]), target.width
    yield float(start[1]), float(direction[1]), target.height
    point = target.corner + start[0] * target.right + start[1] * target.down - cutting.corner
    change = direction[0] * target.right + direction[1] * target.down
    for axis, pixels in ((cutting.right, cutting.width), (cutting.down, cutting.height)):
        square = float(axis @ axis)
        yield float(point @ axis) / square, float(change @ axis) / square, pixels


def _clipped(bounds: Iterator[tuple[float, float, int]]) -> tuple[float, float] | None:
    """Return the part of a line that lies in every picture, edges of pixels included; None if it is empty."""
    low, high = -math.inf, math.inf
    for at, change, pixels in bounds:
        if abs(change) < 1e-12:
            if not -0.5 <= at <= pixels - 0.5:
                return None
            continue
        ends = sorted(((-0.5 - at) / change, (pixels - 0.5 - at) / change))
        low, high = max(low, ends[0]), min(high, ends[1])
    return (low, high) if low < high else None


def same_level(volume: PlacedVolume, parallel: PlacedVolume) -> tuple[int | None, ...] | None:
    """Return the nearest slice of a parallel volume for each slice; None if they are not parallel.

    A slice beyond the other stack by more than half a step of either has no partner.
    """
    if volume.planes[0].angle(parallel.planes[0]) >= _PARALLEL_DEG:
        return None
    normal, most = parallel.planes[0].normal, max(volume.step_mm, parallel.step_mm) / 2
    levels = [float(plane.centre @ normal) for plane in parallel.planes]
    partners: list[int | None] = []
    for plane in volume.planes:
        distances = [abs(float(plane.centre @ normal) - level) for level in levels]
        nearest = int(np.argmin(distances))
        partners.append(nearest if distances[nearest] <= most else None)
    return tuple(partners)
