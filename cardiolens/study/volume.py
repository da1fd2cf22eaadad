"""Read volumes and display their frames; the only module that knows the axes of files.

A stored voxel is a[i, j, k] or a[i, j, slice, phase] with i fastest in the file, so a frame read without
copying has the axes (j, i). A displayed frame has the axes (row, column).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardiolens.base.errors import InputError
from cardiolens.study.nifti import parse_header, read_file, sha256, voxels
from cardiolens.study.structure import Layout, small
from cardiolens.study.volume_manifest import VolumeManifest

_SWAPPED = 1.5  # ratio of change along the phases to change along the slices: above, axes are swapped
_FEWEST_PHASES = 3
_FEWEST_SLICES = 8  # smaller stacks are not tested for being a cycle
_CLOSED = 2.0  # largest difference of last and first frame of a cycle, in mean steps
_TURNS = 3.0  # least difference of the first and the most unlike frame of a cycle, in mean steps

Frame = NDArray[np.float64]


def _check_time(frames: list[Frame], layout: Layout, *, may_cycle: bool) -> None:
    """Refuse a grid with phases that look like slices or vice versa; `frames` are in canonical order.

    `may_cycle`: some sequence of the anatomy shows a cycle, which a stack might be by mistake.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # extreme values, which windowing refuses later
        if layout.n_phases >= _FEWEST_PHASES and layout.n_slices > 1:
            _check_swapped(np.array(frames).reshape(layout.n_slices, layout.n_phases, *frames[0].shape))
        elif may_cycle and layout.n_phases == 1 and layout.n_slices >= _FEWEST_SLICES:
            _check_cycle(frames)


def _check_swapped(grid: Frame) -> None:
    in_time = float(np.median(np.mean((grid[:, 1:] - grid[:, :-1]) ** 2, axis=(-2, -1))))  # a bolus is brief
    across = float(np.median(np.mean((grid[1:] - grid[:-1]) ** 2, axis=(-2, -1))))
    if in_time > _SWAPPED * across:
        raise InputError(
            f"time_looks_like_slices: neighbouring phases differ by {in_time:.4g} (mean square), "
            f"neighbouring slices by {across:.4g}; expected less change in time; re-export it with axes "
            '(i, j, slice, phase) or correct layout; or add "confirmed": ["layout"]'
        )


def _check_cycle(frames: list[Frame]) -> None:
    steps = float(np.mean([np.mean((after - before) ** 2) for before, after in pairwise(frames)]))
    closing = float(np.mean((frames[-1] - frames[0]) ** 2))
    furthest = max(float(np.mean((frame - frames[0]) ** 2)) for frame in frames)
    if closing < _CLOSED * steps and furthest > _TURNS * steps:
        raise InputError(
            f"slices_look_like_time: its last slice differs from its first by {closing:.4g} (mean square), "
            f"neighbours by {steps:.4g} and the most unlike one by {furthest:.4g}; expected a stack, not a "
            f"cycle; declare its {len(frames)} frames as phases in layout; or add "
            '"confirmed": ["layout"]'
        )


@dataclass(frozen=True, slots=True)
class Volume:
    """One volume in memory; frames are addressed by canonical index."""

    manifest: VolumeManifest
    layout: Layout
    slope: float  # intensity = stored * slope + inter
    inter: float
    in_file_order: NDArray[Any]  # (frame, j, i)
    file_frames: tuple[int, ...]  # index in file order, by canonical index
    sha256: str  # of its file
    n_bytes: int  # read from disk

    @property
    def displayed_shape(self) -> tuple[int, int]:
        """Height and width of a displayed frame."""
        _, n_j, n_i = self.in_file_order.shape
        return (n_j, n_i) if self.manifest.display_transform.transpose else (n_i, n_j)

    def stored(self, idx: int) -> NDArray[Any]:
        """Return the stored values of the frame at a canonical index, axes (j, i)."""
        frame: NDArray[Any] = self.in_file_order[self.file_frames[idx]]
        return frame

    def displayed(self, frame: NDArray[Any]) -> NDArray[Any]:
        """Convert a frame of this volume from stored axes (j, i) to displayed axes (row, column)."""
        transform = self.manifest.display_transform
        frame = frame if transform.transpose else frame.T
        return frame[:: -1 if transform.flip_rows else 1, :: -1 if transform.flip_cols else 1]


def read_volume(folder: Path, manifest: VolumeManifest) -> Volume:
    """Read one volume of a study and check it against its manifest; InputError names the file."""
    with naming_file(manifest.path):
        stored = read_file(folder / manifest.path, manifest.most_bytes)
        header = parse_header(stored)
        shape = _grid_shape(header.shape)
        if shape != manifest.stored_shape:  # checked before reading voxels: a small file may declare many
            raise InputError(
                f"its shape is {shape}; expected {manifest.stored_shape} as declared; correct shape or file"
            )
        in_file_order = voxels(stored, header).reshape(-1, shape[1], shape[0])
        digest = _checked_hash(stored, manifest.sha256)
        layout = manifest.stored_layout()
        file_frames = layout.canonical_order(apex_first=manifest.apex_first)
        if manifest.take is not None:
            file_frames = file_frames[manifest.take :: layout.n_phases]
            layout = manifest.declared_layout()
        if "layout" not in manifest.confirmed:
            may_cycle = any(kind.over_time == "cycle" for kind in manifest.anatomy.sequences.values())
            _check_time([small(in_file_order[at]) for at in file_frames], layout, may_cycle=may_cycle)
        manifest.check_header(header, slices_alone=len(shape) == 4 or layout.n_phases == 1)
    if manifest.mask is not None:
        with naming_file(manifest.mask.path):
            mask = read_file(folder / manifest.mask.path, manifest.most_bytes)
            mask_shape = _grid_shape(parse_header(mask).shape)
            _checked_hash(mask, manifest.mask.sha256)
            if mask_shape != shape:
                raise InputError(
                    f"is a mask of shape {mask_shape}; expected {shape}, the shape of {manifest.path}; "
                    "correct the mask or leave it out"
                )
    return Volume(
        manifest=manifest,
        layout=layout,
        slope=header.slope,
        inter=header.inter,
        in_file_order=in_file_order,
        file_frames=file_frames,
        sha256=digest,
        n_bytes=len(stored) + (0 if manifest.mask is None else len(mask)),
    )


@contextmanager
def naming_file(path: str) -> Iterator[None]:
    """Put the name of a file before the InputErrors of this block."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _checked_hash(stored: bytes, declared: str | None) -> str:
    digest = sha256(stored)
    if declared not in (None, digest):
        raise InputError(
            f"its sha256 is {digest}; expected {declared} as declared; restore the file or correct sha256"
        )
    return digest


def _grid_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Check that a shape has 3 or 4 axes without a zero, and drop a singleton fourth axis."""
    if len(shape) not in (3, 4) or min(shape) < 1:
        raise InputError(
            f"has {len(shape)} axes {shape}; expected (i, j, Z) or (i, j, slice, phase), none of them empty; "
            "re-export it as such"
        )
    return shape[:3] if shape[3:] == (1,) else shape
