"""Give frames the masks that a layout names for them."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cardiolens.curation.ingest.image import ORDINARY, Image, LooseMask, MaskFrame
from cardiolens.curation.ingest.layouts.assignment import Assignment
from cardiolens.curation.ingest.nifti.exported_files import ExportedFile, Frames
from cardiolens.curation.ingest.nifti.nifti_file import Scan
from cardiolens.curation.ingest.reasons import Reason

_NO_PHASE = "nothing says which phase of its image it is of"


def link_masks(
    images: Sequence[ExportedFile],
    masks: Sequence[ExportedFile],
    frames: Frames,
    assignment: Assignment,
) -> None:
    """Give each frame the mask that the layout names for its volume and phase; reject the other masks."""
    linked: dict[str, dict[int, MaskFrame]] = defaultdict(dict)
    for mask in masks:
        if mask.role is None or assignment.is_unlabelled(mask.path):
            frames.rejects.append((mask.path, 0, Reason.MASK, "of an unlabelled part of the set"))
            continue
        first = next((file.path for file in images if file.path in frames.images), None)
        fitting = 0
        reasons: list[str] = []
        for image in images:
            if image.role is None or image.role.volume not in mask.role.mask_of:
                continue
            if image.path not in frames.images:
                continue
            why = _link(mask, image, frames.images[image.path], linked[image.path], assignment.labels)
            fitting += why is None
            if why == _NO_PHASE:
                frames.images[image.path] = [
                    _flagged(each, "mask_phase_unknown") for each in frames.images[image.path]
                ]
            reasons += [] if why is None else [why]
        why = "" if fitting else next(iter(reasons), "without an image")
        if why:
            frames.rejects.append((mask.path, 0, Reason.MASK, why))
        if first is not None:
            frames.used[mask.path] = first
            frames.masks.setdefault(first, []).append(_loose(mask, assignment.labels, why))
    for path, by_frame in linked.items():
        frames.images[path] = [
            image if image.frame not in by_frame else replace(image, mask=by_frame[image.frame])
            for image in frames.images[path]
        ]


def _loose(mask: ExportedFile, labels: str, why: str) -> LooseMask:
    assert mask.role is not None
    name = mask.name
    kind = " ".join((*mask.role.mask_of, name.moment)).strip()
    return LooseMask(mask.scan.place, mask.scan.grid, mask.scan.digests, kind, labels, mask.role.rule, why)


def _flagged(image: Image, flag: str) -> Image:
    assert image.reading is not None
    return replace(image, reading=replace(image.reading, flags=(*image.reading.flags, flag)))


def _link(
    mask: ExportedFile,
    image: ExportedFile,
    frames: Sequence[Image],
    linked: dict[int, MaskFrame],
    labels: str,
) -> str | None:
    """Link a mask to the frames of an image; return why it does not fit, or None."""
    slices, phases, rows, columns = image.scan.grid
    m_slices, m_phases, m_rows, m_columns = mask.scan.grid
    if (m_slices, m_rows, m_columns) != (slices, rows, columns):
        return f"its grid is {m_columns} x {m_rows} x {m_slices}, its image's {columns} x {rows} x {slices}"
    if not _same_lengths(mask.scan, image.scan):
        return "its voxels have another size than its image's"
    if _is_elsewhere(mask.scan, image.scan):
        return "its header places it elsewhere than its image"
    if m_phases == phases > 1:
        where = range(phases)
    else:
        if m_phases != 1:
            return f"it has {m_phases} phases, its image {phases}"
        phase = _phase_of(mask, image, frames)
        if phase is None:
            return _NO_PHASE
        where = range(phase, phase + 1)
    for number, phase in enumerate(where):
        for slice_number in range(slices):
            frame = slice_number * phases + phase
            linked[frame] = MaskFrame(
                mask.scan.place,
                slice_number * m_phases + number,
                labels,
                mask.role.rule if mask.role else ORDINARY,
            )
    return None


def _same_lengths(mask: Scan, image: Scan) -> bool:
    return bool(np.allclose(mask.lengths, image.lengths, rtol=0.01))


def _is_elsewhere(mask: Scan, image: Scan) -> bool:
    if mask.affine is None or image.affine is None:
        return False
    slices, _, rows, columns = image.grid
    corners = np.array([[0, 0, 0, 1], [columns, 0, 0, 1], [0, rows, 0, 1], [0, 0, slices, 1]]).T
    return bool(np.abs((mask.affine - image.affine) @ corners)[:3].max() > 0.5 * min(image.lengths[:2]))


def _phase_of(mask: ExportedFile, image: ExportedFile, frames: Sequence[Image]) -> int | None:
    """Return the phase of an image that a mask of one phase is of: by number, else by moment."""
    phases = image.scan.grid[1]
    if mask.name.phase is not None and phases > 1:
        return mask.name.phase - 1 if mask.name.phase <= phases else None
    if phases == 1:
        if mask.name.phase != image.name.phase:
            return None
        mine = {mask.name.moment, image.name.moment} - {""}
        return 0 if len(mine) <= 1 else None
    moments = {frame.moment: frame.frame % phases for frame in frames if frame.moment}
    if mask.name.moment in moments:
        return moments[mask.name.moment]
    first = image.role is not None and image.role.first_is_ed and not mask.name.moment
    return 0 if first else None
