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
from cardiolens.study.layout import Layout, infer_n_phases, resolve, small
from cardiolens.study.nifti import parse_header, read_file, sha256, voxels
from cardiolens.study.volume_manifest import DisplayTransform, VolumeManifest, check_spacing, check_turned

_SWAPPED = 1.5  # ratio of change along the phases to change along the slices: above, axes are swapped
_FEWEST_PHASES = 3
_FEWEST_SLICES = 8  # smaller stacks are not tested for being a cycle
_CLOSED = 2.0  # largest difference of last and first frame of a cycle, in mean steps
_TURNS = 3.0  # least difference of the first and the most unlike frame of a cycle, in mean steps

Frame = NDArray[np.float64]


def check_time(frames: list[Frame], layout: Layout, *, may_cycle: bool = True) -> None:
    """Refuse a grid whose phases look like slices or vice versa; `frames` are in canonical order.

    `may_cycle`: some sequence of the anatomy shows a cycle, which a stack might be by mistake.

    InputError gives the evidence: mean squared differences of neighbouring frames.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # extreme values, which windowing refuses later
        if layout.n_phases >= _FEWEST_PHASES and layout.n_slices > 1:
            _check_swapped(frames, layout)
        elif may_cycle and layout.n_phases == 1 and layout.n_slices >= _FEWEST_SLICES:
            _check_cycle(frames)


def _check_swapped(frames: list[Frame], layout: Layout) -> None:
    grid = np.array(frames).reshape(layout.n_slices, layout.n_phases, *frames[0].shape)
    pixels = (-2, -1)
    in_time = float(np.median(np.mean((grid[:, 1:] - grid[:, :-1]) ** 2, axis=pixels)))  # a bolus is brief
    across = float(np.median(np.mean((grid[1:] - grid[:-1]) ** 2, axis=pixels)))
    if in_time > _SWAPPED * across:
        raise InputError(
            f"time_looks_like_slices: neighbouring phases differ by {in_time:.4g} (mean square), "
            f"neighbouring slices by {across:.4g}; expected less change in time, so its {layout.n_slices} "
            f"slices seem to be phases and its {layout.n_phases} phases slices; re-export it with axes "
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
            f"cycle, so its {len(frames)} slices seem to be phases; declare them in layout; or add "
            '"confirmed": ["layout"]'
        )


@dataclass(frozen=True, slots=True)
class Volume:
    """One volume in memory; frames are addressed by canonical index."""

    manifest: VolumeManifest
    layout: Layout
    layout_source: str
    slope: float  # intensity = stored * slope + inter
    inter: float
    in_file_order: NDArray[Any]  # (frame, j, i)
    file_frames: tuple[int, ...]  # index in file order, by canonical index
    hashes: dict[str, str]  # sha256 of each file read, by path
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
        return _displayed(frame, self.manifest.display_transform)


def read_volume(folder: Path, manifest: VolumeManifest) -> Volume:
    """Read one volume of a study and check it against its manifest; InputError names the file."""
    with _naming_file(manifest.path):
        stored = read_file(folder / manifest.path, manifest.most_bytes)
        header = parse_header(stored)
        shape = _grid_shape(header.shape)
        if shape != manifest.stored_shape:  # checked before reading voxels: a small file may declare many
            raise InputError(
                f"its shape is {shape}; expected {manifest.stored_shape} as declared; correct shape or file"
            )
        flat = voxels(stored, header)
        digest = _checked_hash(stored, manifest.sha256)
        in_file_order = flat.reshape(-1, shape[1], shape[0])
        layout, source = _layout(manifest, shape, in_file_order)
        file_frames = _file_frames(layout, apex_first=manifest.apex_first, is_4d=len(shape) == 4)
        if manifest.take is not None:
            file_frames = file_frames[manifest.take :: layout.n_phases]
            layout = Layout("static", layout.n_slices, 1)
        if "layout" not in manifest.confirmed:
            with np.errstate(over="ignore", invalid="ignore"):  # extreme values; windowing refuses these
                kinds = manifest.anatomy.sequences.values()
                may_cycle = any(kind.over_time == "cycle" for kind in kinds)
                check_time([small(in_file_order[at]) for at in file_frames], layout, may_cycle=may_cycle)
        manifest.timing(layout)
        slices_alone = len(shape) == 4 or layout.n_phases == 1
        check_spacing(
            manifest.spacing_mm,
            header,
            slices_alone=slices_alone,
            confirmed="spacing" in manifest.confirmed,
        )
        check_turned(header, confirmed="display" in manifest.confirmed)
    hashes, n_bytes = {manifest.path: digest}, len(stored)
    if manifest.mask is not None:
        hashes[manifest.mask.path], n_mask_bytes = _check_mask(folder, manifest, shape)
        n_bytes += n_mask_bytes
    return Volume(
        manifest=manifest,
        layout=layout,
        layout_source=source,
        slope=header.slope,
        inter=header.inter,
        in_file_order=in_file_order,
        file_frames=file_frames,
        hashes=hashes,
        n_bytes=n_bytes,
    )


@contextmanager
def _naming_file(path: str) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _checked_hash(stored: bytes, declared: str | None) -> str:
    digest = sha256(stored)
    if declared is not None and digest != declared:
        raise InputError(
            f"its sha256 is {digest}; expected {declared} as declared; restore the file or correct sha256"
        )
    return digest


def _grid_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Check that a shape has 3 or 4 axes without a zero, and drop a singleton fourth axis."""
    if len(shape) not in (3, 4):
        raise InputError(
            f"has {len(shape)} axes {shape}; expected (i, j, Z) or (i, j, slice, phase); re-export it as such"
        )
    if min(shape) < 1:
        raise InputError(
            f"has an axis of size zero {shape}; expected at least one voxel per axis; re-export it"
        )
    return shape[:3] if shape[3:] == (1,) else shape


def _check_mask(folder: Path, manifest: VolumeManifest, shape: tuple[int, ...]) -> tuple[str, int]:
    mask, image = manifest.mask, manifest.path
    assert mask is not None
    with _naming_file(mask.path):
        stored = read_file(folder / mask.path, manifest.most_bytes)
        mask_shape = _grid_shape(parse_header(stored).shape)
        digest = _checked_hash(stored, mask.sha256)
        if mask_shape != shape:
            raise InputError(
                f"is a mask of shape {mask_shape}; expected {shape}, the shape of {image}; correct the mask "
                "or leave it out"
            )
    return digest, len(stored)


def _layout(
    manifest: VolumeManifest, shape: tuple[int, ...], in_file_order: NDArray[Any]
) -> tuple[Layout, str]:
    declared = manifest.stored_layout()
    if declared is not None:
        return declared, manifest.layout_source
    frames = [small(frame) for frame in in_file_order]
    n_phases = infer_n_phases(frames, cyclic=manifest.over_time == "cycle")
    inferred = resolve(shape, manifest.layout.order, None, n_phases, ())
    assert inferred is not None, "n_phases is known"
    return inferred, "inferred"


def _file_frames(layout: Layout, *, apex_first: bool, is_4d: bool) -> tuple[int, ...]:
    """Return the index in file order of each canonical index.

    In a 4D file the phase is the slowest axis, but stored indices of a Layout count slice by slice.
    """
    canonical = layout.canonical_order(apex_first=apex_first)
    if not is_4d:
        return canonical
    return tuple(k % layout.n_phases * layout.n_slices + k // layout.n_phases for k in canonical)


def _displayed(frame: NDArray[Any], transform: DisplayTransform) -> NDArray[Any]:
    frame = frame if transform.transpose else frame.T
    return frame[:: -1 if transform.flip_rows else 1, :: -1 if transform.flip_cols else 1]
