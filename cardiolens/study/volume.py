"""Read volumes and display their frames; the only module that knows the axes of files.

A stored voxel is a[i, j, k] or a[i, j, slice, phase] with i fastest in the file, so a frame read without
copying has the axes (j, i). A displayed frame has the axes (row, column).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardiolens.base.errors import InputError
from cardiolens.study.nifti import parse_header, read_file, sha256, voxels
from cardiolens.study.volume_manifest import VolumeManifest

_SMALL_SIDE = 64  # pixels; frames are compared at this size
_SWAPPED = 1.5  # ratio of change along the phases to change along the slices: above, axes are swapped
_FEWEST_PHASES = 3
_FEWEST_SLICES = 8  # smaller stacks are not tested for being a cycle
_CLOSED = 2.0  # largest difference of last and first frame of a cycle, in mean steps
_DECIMALS = 3  # of labels that are stored with a scale, which rounds
_TURNS = 3.0  # least difference of the first and the most unlike frame of a cycle, in mean steps


def small(frame: NDArray[Any]) -> NDArray[np.float64]:
    """Reduce a frame to means over square blocks, at most 64 x 64; incomplete blocks are dropped."""
    block = -(-max(frame.shape) // _SMALL_SIDE)
    rows, columns = (side // block or 1 for side in frame.shape)
    cropped = frame[: rows * block, : columns * block].astype(np.float64)
    blocks = cropped.reshape(rows, cropped.shape[0] // rows, columns, cropped.shape[1] // columns)
    means: NDArray[np.float64] = blocks.mean(axis=(1, 3))
    return means


def _check_time(grid: NDArray[Any], *, may_cycle: bool) -> None:
    """Refuse frames by slice and phase where phases look like slices or vice versa.

    `may_cycle`: some sequence of the anatomy shows a cycle, which a stack might be by mistake.
    """
    n_slices, n_phases = grid.shape[:2]
    with np.errstate(over="ignore", invalid="ignore"):  # extreme values, which windowing refuses later
        if n_phases >= _FEWEST_PHASES and n_slices > 1:
            _check_swapped(np.array([[small(frame) for frame in phases] for phases in grid]))
        elif may_cycle and n_phases == 1 and n_slices >= _FEWEST_SLICES:
            _check_cycle([small(frame) for frame in grid[:, 0]])


def _check_swapped(grid: NDArray[np.float64]) -> None:
    in_time = float(np.median(np.mean((grid[:, 1:] - grid[:, :-1]) ** 2, axis=(-2, -1))))  # a bolus is brief
    across = float(np.median(np.mean((grid[1:] - grid[:-1]) ** 2, axis=(-2, -1))))
    if in_time > _SWAPPED * across:
        raise InputError(
            f"time_looks_like_slices: neighbouring phases differ by {in_time:.4g} (mean square), "
            f"neighbouring slices by {across:.4g}; expected less change in time; re-export it with axes "
            '(i, j, slice, phase) or correct layout; or add "confirmed": ["layout"]'
        )


def _check_cycle(frames: list[NDArray[np.float64]]) -> None:
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
    """One volume in memory, as stored; intensity = stored * slope + inter."""

    manifest: VolumeManifest
    slope: float
    inter: float
    in_file_order: NDArray[Any]  # all frames of the file, (frame, j, i)
    grid: NDArray[Any]  # view of those that are used, in canonical order: (slice, phase, j, i)
    sha256: str  # of its file
    n_bytes: int  # read from disk

    @property
    def frames(self) -> list[NDArray[Any]]:
        """The stored frames by canonical index, axes (j, i)."""
        return [frame for phases in self.grid for frame in phases]

    def displayed(self, stored: NDArray[Any]) -> NDArray[Any]:
        """Turn the last two axes of frames of this volume from (j, i) to (row, column)."""
        transform = self.manifest.display_transform
        turned = stored if transform.transpose else stored.swapaxes(-2, -1)
        return turned[..., :: -1 if transform.flip_rows else 1, :: -1 if transform.flip_cols else 1]


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
        grid = manifest.stored_layout().grid(in_file_order)[:: -1 if manifest.apex_first else 1]
        if manifest.take is not None:
            grid = grid[:, manifest.take : manifest.take + 1]
        if "layout" not in manifest.confirmed:
            may_cycle = any(kind.over_time == "cycle" for kind in manifest.anatomy.sequences.values())
            _check_time(grid, may_cycle=may_cycle)
        manifest.check_header(header, slices_alone=len(shape) == 4 or grid.shape[1] == 1)
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
        slope=header.slope,
        inter=header.inter,
        in_file_order=in_file_order,
        grid=grid,
        sha256=digest,
        n_bytes=len(stored) + (0 if manifest.mask is None else len(mask)),
    )


def read_mask(folder: Path, manifest: VolumeManifest) -> Volume:
    """Read the mask of a volume as a volume of its labels; InputError names the file."""
    assert manifest.mask is not None, "only a volume with a mask is asked for it"
    fields: dict[str, object] = {"path": manifest.mask.path, "sha256": manifest.mask.sha256, "mask": None}
    fields["confirmed"] = (*manifest.confirmed, "layout")  # the empty end slices of a mask look like a cycle
    mask = read_volume(folder, manifest.model_copy(update=fields))
    if (mask.slope, mask.inter) == (1, 0):
        return mask
    stored, used = (
        np.round(frames * mask.slope + mask.inter, _DECIMALS) for frames in (mask.in_file_order, mask.grid)
    )
    return replace(mask, slope=1.0, inter=0.0, in_file_order=stored, grid=used)


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
