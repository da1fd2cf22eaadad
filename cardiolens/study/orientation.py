"""Check display and slice order of volumes against the affines of their study (protocol 1.4).

In the heart, the largest short-axis stack with a credible affine gives the frame. The frame decides which of
the eight transforms gives each view, short or long axis, its standard orientation. If that transform is
clear, any other is refused, unless a person confirmed it in study.json. Where an anatomy's frame is the
patient, the directions that its views name decide in the same way.

Directions are DICOM's (left, back, head). A short axis is shown with the right ventricle on the image's left
and the anterior wall up. A long axis is shown like the phantom's: apex up, and on the image's right the wall
at 30 degrees (four-chamber: lateral), 90 (two-chamber: anterior) or 330 (three-chamber: inferolateral), which
the anatomy has as `right_deg`.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardiolens.base.errors import InputError
from cardiolens.study.anatomy import View, heart
from cardiolens.study.manifest import Study, StudyManifest
from cardiolens.study.nifti import Header, read_header
from cardiolens.study.volume_manifest import DisplayTransform, VolumeManifest

Point = NDArray[Any]  # three coordinates or components

TYPICAL_BASE = np.array([-0.6, 0.61, 0.5])  # from apex to base: right, back and up
# Degrees, in the heart's frame, of the wall on the image's right of a long axis.
PROTOTYPE_RIGHT = {
    name: view.display.right_deg
    for name, view in heart().views.items()
    if view.slices is None and view.display is not None and view.display.right_deg is not None
}
PROTOTYPES = {name: degrees % 180 for name, degrees in PROTOTYPE_RIGHT.items()}
_UPWARD = np.array([0.0, -0.6, 0.8])  # forward and up
_CLEAR = 0.25  # margin of the best transform over the next: image turned by less than 38 degrees


@dataclass(frozen=True, slots=True)
class HeartFrame:
    """Directions of a heart in the patient, and a point on its long axis if known."""

    base: Point
    right: Point
    up: Point
    known: bool  # True: from a short-axis stack of this study; False: typical directions
    axis: Point | None = None

    def angle(self, direction: Point) -> float:
        """Return the angle of a direction seen from the apex, in degrees: 0 lateral, 90 anterior."""
        return float(np.degrees(np.arctan2(direction @ self.up, direction @ self.right)))

    def toward(self, degrees: float) -> Point:
        """Return the direction at an angle in degrees."""
        radians = np.radians(degrees)
        turned: Point = np.cos(radians) * self.right + np.sin(radians) * self.up
        return turned


def frame_along(direction: Point | None) -> HeartFrame:
    """Return the frame of a heart from the short-axis normal (either sign); None gives a typical heart."""
    base = TYPICAL_BASE if direction is None else direction * (1 if direction @ TYPICAL_BASE > 0 else -1)
    base = base / np.linalg.norm(base)
    up = _UPWARD - (_UPWARD @ base) * base
    up /= np.linalg.norm(up)
    return HeartFrame(base, np.cross(up, -base), up, known=direction is not None)


@dataclass(frozen=True, slots=True)
class Display:
    """A display transform, and whether it is clearly the best of the eight."""

    transform: DisplayTransform
    clear: bool


def every_transform() -> tuple[DisplayTransform, ...]:
    """Return the eight display transforms."""
    return tuple(
        DisplayTransform(transpose=transpose, flip_rows=flip_rows, flip_cols=flip_cols)
        for transpose, flip_rows, flip_cols in product((False, True), repeat=3)
    )


def directions(i_axis: Point, j_axis: Point, transform: DisplayTransform) -> tuple[Point, Point]:
    """Return image right and image up of a displayed frame, from the directions of the stored axes."""
    down, across = (j_axis, i_axis) if transform.transpose else (i_axis, j_axis)
    return (-across if transform.flip_cols else across), (down if transform.flip_rows else -down)


def best_display(i_axis: Point, j_axis: Point, view: View, frame: HeartFrame) -> Display:
    """Return the transform that best gives a view its standard orientation; axes are unit vectors."""
    aim = right_and_up(view, frame)
    assert aim is not None, "every view of the heart declares a display"
    return best_transform(i_axis, j_axis, *aim)


def best_transform(i_axis: Point, j_axis: Point, right: Point, up: Point) -> Display:
    """Return the transform that best shows the directions `right` and `up` where they belong."""
    scores: list[tuple[float, DisplayTransform]] = []
    for transform in every_transform():
        image_right, image_up = directions(i_axis, j_axis, transform)
        scores.append((float(image_right @ right + image_up @ up), transform))
    scores.sort(key=lambda score: score[0], reverse=True)
    return Display(scores[0][1], scores[0][0] - scores[1][0] > 2 * _CLEAR)


_DIRECTIONS: Mapping[str, Point] = {  # of the patient, as DICOM counts them
    **{"left": np.array([1.0, 0, 0]), "right": np.array([-1.0, 0, 0])},
    **{"posterior": np.array([0, 1.0, 0]), "anterior": np.array([0, -1.0, 0])},
    **{"superior": np.array([0, 0, 1.0]), "inferior": np.array([0, 0, -1.0])},
}


def right_and_up(view: View, frame: HeartFrame | None) -> tuple[Point, Point] | None:
    """Return image right and up of a view as directions in the patient; None if nothing decides them."""
    convention = view.display
    if convention is not None and convention.right is not None and convention.up is not None:
        return _DIRECTIONS[convention.right], _DIRECTIONS[convention.up]
    if convention is None or convention.right_deg is None or frame is None:
        return None
    if view.slices is not None:
        return frame.right, frame.up
    return frame.toward(convention.right_deg), -frame.base


_TO_LPS = np.diag([-1.0, -1.0, 1.0, 1.0])
_SHORT_AXIS_DEG = 35.0  # largest angle of a stack's normal to the typical axis of a human heart
_ALONG_DEG = 30.0  # largest angle of a long-axis plane to the heart's axis
_ALIGNED = 1e-3  # 1 - cosine below which an axis counts as parallel to a scanner axis
_ALONG_SLICES = 0.5  # least cosine of slice step and slice axis for judging the slice order
_LOOK = "look at it (jobs/show_study.py)"


@dataclass(frozen=True, slots=True)
class VolumePlacement:
    """A volume in the patient, by its affine from stored indices to left, back and head in mm."""

    header: Header
    affine: Point

    @property
    def axes(self) -> Point:
        """Unit directions of the stored axes i, j and slice, one a row."""
        rows: Point = self.affine[:3, :3].T
        units: Point = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return units

    @property
    def normal(self) -> Point:
        """Unit normal of the slices."""
        return np.cross(*self.axes[:2])

    @property
    def aligned(self) -> bool:
        """Whether both axes are parallel to scanner axes, as if a converter wrote an identity affine."""
        return bool(np.abs(self.axes[:2]).max(axis=1).min() > 1 - _ALIGNED)


class StudyOrientation:
    """Where the volumes of a study lie in the patient, and the frame of its heart."""

    def __init__(self, study: Study) -> None:
        self.placements: dict[str, VolumePlacement] = {}  # of volumes with an affine, by volume_id
        for volume in study.manifest.volumes:
            try:
                header = read_header(study.folder / volume.path)
            except InputError:  # reading the whole file later reports the error
                continue
            if header.affine is not None and np.linalg.norm(header.affine[:3, :3], axis=0).all():
                self.placements[volume.volume_id] = VolumePlacement(header, _TO_LPS @ header.affine)
        self.frame = self._heart_frame(study)

    def _heart_frame(self, study: Study) -> HeartFrame | None:
        """Return the heart's frame from the largest short-axis volume; None without one that is credible."""
        short = [
            place
            for volume in study.manifest.volumes
            if volume.slice_axis is not None
            and (place := self.placements.get(volume.volume_id)) is not None
            and not place.aligned
        ]
        if study.anatomy.frame != "heart" or not short:
            return None
        normal = max(short, key=lambda place: math.prod(place.header.shape[2:])).normal
        return frame_along(normal) if _tilt(normal, TYPICAL_BASE) < _SHORT_AXIS_DEG else None

    def doubts(self, manifest: VolumeManifest) -> Iterator[str]:
        """Yield doubts about display and order of a volume; InputError if the display is certainly wrong."""
        place, name = self.placements.get(manifest.volume_id), manifest.volume_id
        unchecked = self._why_unchecked(manifest, place)
        if place is None or unchecked:
            yield f"{name}: {unchecked}, so display_transform was not checked; {_LOOK}"
            return
        if turned := self._how_turned(manifest, place):
            yield f"{name}: by its affine its slices {turned}; look at it and check view"
            return
        best, shown = self.best(manifest), manifest.display_transform
        if best is None:
            unchecked = f"view {manifest.view} declares no display"
            yield f"{name}: {unchecked}, so display_transform was not checked; {_LOOK}"
        elif best.transform != shown:
            message = f"{name}: display_transform is {_words(shown)}; by the affines of the study it should "
            message += f"be {_words(best.transform)}"
            if best.clear and "display" not in manifest.confirmed:
                raise InputError(
                    f"{message}; expected {_aim_words(manifest)}; {_LOOK} and correct it, or add "
                    '"confirmed": ["display"] where the affine is wrong'
                )
            why = "a person confirmed it" if best.clear else "that is not clear"
            yield f"{message}, but {why}; look at it"
        yield from self._order_doubts(manifest, place)

    def contradicts(self, manifest: VolumeManifest) -> bool:
        """Return whether the affines contradict the display of a volume; False without usable affines."""
        best = self.best(manifest)
        return best is not None and best.transform != manifest.display_transform

    def best(self, manifest: VolumeManifest, *, turned: bool = True) -> Display | None:
        """Return the transform that shows a volume as its view declares; None if nothing decides it.

        Without `turned` also None if the slices lie as the view says they do not.
        """
        place = self.placements.get(manifest.volume_id)
        aim = right_and_up(manifest.anatomy.views[manifest.view], self.frame)
        if place is None or aim is None or (manifest.anatomy.is_heart and place.aligned):
            return None
        if not turned and self._how_turned(manifest, place):
            return None
        return best_transform(place.axes[0], place.axes[1], *aim)

    def _why_unchecked(self, manifest: VolumeManifest, place: VolumePlacement | None) -> str:
        """Return why nothing can be said about a volume; empty if the frame of its anatomy is known."""
        if place is None:
            return "its header gives no orientation"
        if manifest.anatomy.is_heart and place.aligned:
            return "its header gives the scanner's own axes, like an identity"
        if manifest.anatomy.is_heart and self.frame is None:
            return "no short axis of the study has an affine near that of a human heart"
        return ""

    def _how_turned(self, manifest: VolumeManifest, place: VolumePlacement) -> str:
        """Return how the slices lie where that contradicts the view; empty if they lie as they should.

        The view speaks of the heart's frame or, without one, may name directions of the patient.
        """
        if self.frame is None:
            aim = right_and_up(manifest.anatomy.views[manifest.view], None)
            tilt = 0.0 if aim is None else _tilt(place.normal, np.cross(*aim))
            return f"are turned by {tilt:.0f} degrees from view {manifest.view}" if tilt > _ALONG_DEG else ""
        tilt, across = _tilt(place.normal, self.frame.base), manifest.slice_axis is not None
        if (tilt if across else 90 - tilt) <= _ALONG_DEG:
            return ""
        return (
            f"lie at {90 - tilt:.0f} degrees to the long axis of the heart; expected "
            f"{'about 90' if across else 'about 0'} for view {manifest.view}"
        )

    def _order_doubts(self, manifest: VolumeManifest, place: VolumePlacement) -> Iterator[str]:
        axis = manifest.slice_axis
        if axis is None or manifest.spatial_order == "unknown":
            return
        last = _DIRECTIONS[axis.last] if self.frame is None else -self.frame.base
        toward_last = float(place.axes[2] @ last)
        order = axis.forward if toward_last > 0 else axis.backward
        is_along = abs(toward_last) >= _ALONG_SLICES and manifest.shape[2:] != (1,)
        if is_along and order != manifest.spatial_order:
            yield (
                f"{manifest.volume_id}: spatial_order is {manifest.spatial_order}; by its affine its slices "
                f"run {order}; look at it and check spatial_order"
            )


def displays_by_affine(folder: Path, entries: Sequence[Mapping[str, Any]]) -> dict[str, DisplayTransform]:
    """Return by path the displays that the affines of a study decide, for entries of a manifest to be.

    An entry has `sequence`, `view` and `path`; entries without a known view, and displays that are not
    clear, are left out.
    """
    volumes = [
        VolumeManifest.model_construct(volume_id=entry["path"], view=entry["view"], path=entry["path"])
        for entry in entries
        if entry["view"] in heart().views
    ]
    if not volumes:
        return {}
    study = Study(folder, StudyManifest.model_construct(study_id=folder.name, volumes=tuple(volumes)), "")
    orientation = StudyOrientation(study)
    displays: dict[str, DisplayTransform] = {}
    for volume in volumes:
        best = orientation.best(volume, turned=False)
        if best is not None and best.clear:
            lengths = orientation.placements[volume.path].header.lengths
            if not lengths.contradicted and not lengths.turned:  # else `prepare` refuses its header
                displays[volume.path] = best.transform
    return displays


def _tilt(normal: Point, axis: Point) -> float:
    """Return the angle between a normal and an axis in degrees, 0 to 90."""
    cosine = abs(float(normal @ axis)) / float(np.linalg.norm(axis))
    return float(np.degrees(np.arccos(min(cosine, 1.0))))


def _words(transform: DisplayTransform) -> str:
    return " + ".join(name for name, on in transform.model_dump().items() if on) or "none"


def _aim_words(manifest: VolumeManifest) -> str:
    convention = manifest.anatomy.views[manifest.view].display
    if convention is not None and convention.right is not None:
        return f"{convention.right} toward the image's right and {convention.up} up"
    if manifest.slice_axis is not None:
        return "the right ventricle on the image's left and the anterior wall up"
    return "the apex up, and the walls of its view on their sides (protocol 1.3)"
