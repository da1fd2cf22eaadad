"""Read one NIfTI file: bounded header, position in the patient, voxels x, y, z, t as frames.

Only shape, type, scaling, affine and time step of the header are used; description, names and extensions
never leave this module.
"""

import hashlib
import math
from pathlib import Path
from typing import Any

import numpy as np
from nibabel.nifti1 import Nifti1Header
from nibabel.nifti2 import Nifti2Header
from nibabel.orientations import aff2axcodes
from numpy.typing import NDArray

from cardiolens.base.untrusted import gzip_stream
from cardiolens.base.untrusted.bounded_files import read_bytes, read_start
from cardiolens.curation.ingest.frame_records import ORDINARY, HeaderRule, RejectedError, Scan, vector
from cardiolens.curation.ingest.reasons import Flag, Reason
from cardiolens.study import nifti
from cardiolens.study.nifti import UNITS_MM, Lengths, VoxelLengths
from cardiolens.study.volume_manifest import MOST_FRAMES, MOST_VOXELS

_PAIR_SUFFIXES = (".hdr", ".img", ".hdr.gz", ".img.gz")
SUFFIXES = (".nii", ".nii.gz", *_PAIR_SUFFIXES)
_MOST_BYTES = 2 << 30  # of a file
_MOST_RATIO = 1100  # largest compression of gzip: a file cannot hold a shape beyond it
_SMALLEST, _LARGEST = 16, 4096  # pixels per side
_LONGEST_STACK_MM = 250.0
_GREY_KINDS = {2, 4, 8, 16, 64, 256, 512, 768, 1024, 1280}
_FIELDS = {*range(1004, 1011), *range(2003, 2010), *range(2016, 2019)}  # intents: vectors, matrices, warps
_PATIENT_CODES = (1, 2)  # scanner and aligned; 3 and 4 are templates of the head
_STRAIGHT = 0.9999  # cosine from which a direction equals a scanner axis
_PARALLEL = 0.02
_MS = {8: 1000.0, 16: 1.0, 24: 0.001}
_TEXTS = ("descrip", "aux_file", "db_name", "intent_name")
_FEW = 16  # most grey values of a mask
_UNFILLED = (1.0, 1.0, 1.0)  # what writers put where they know nothing
_PAIR = "half of a pair of header and voxels; convert it to one .nii"

Array = NDArray[Any]


def frames_at(place: Path) -> Array:
    """Read all frames as stored, slice by slice; shape (frame, row, column)."""
    _, _, frames = _read(place)
    return frames.reshape(-1, *frames.shape[2:])


def scan(place: Path, rule: HeaderRule = ORDINARY) -> Scan:
    """Read a file once by what a layout says of its header; RejectedError if it holds no usable image.

    A damaged file raises what nibabel and zlib raise.
    """
    header, raw, frames = _read(place)
    slices, phases, rows, columns = frames.shape
    if not all(_SMALLEST <= side <= _LARGEST for side in (rows, columns)):
        raise RejectedError(Reason.BAD_SHAPE, f"{rows} x {columns}")
    lengths, places_mm, doubt, times = _lengths(header.lengths, rule)
    if slices > min(rows, columns) or (rule == ORDINARY and slices * lengths[2] > _LONGEST_STACK_MM):
        detail = f"{slices} slices of {lengths[2]:g} mm; its third axis holds others"
        raise RejectedError(Reason.BAD_SHAPE, detail)
    flags = [Flag.SPACING] if doubt else []
    matrix = _affine(header, raw, lengths, times)
    axes = () if matrix is None else aff2axcodes(header.affine)[:2]  # may be no position
    if matrix is None or _is_straight(matrix) or header.lengths.turned:
        matrix = None
        flags += [Flag.POSITION] if rule.position == "header" else []
        flags += [Flag.DISPLAY] if rule.stored not in ("", "".join(map(str, axes))) else []
    return Scan(
        place=place,
        grid=(slices, phases, rows, columns),
        affine=matrix,
        lengths=lengths,
        places_mm=places_mm,
        doubt=doubt,
        scale=(header.slope, header.inter),
        phase_ms=_phase_ms(raw) if rule.time == "header" else None,
        few_values=_has_few_values(frames),
        flags=tuple(flags),
        texts=tuple(f"NIfTI {name}" for name in _TEXTS if name in raw and raw[name].tobytes().strip(b"\0 ")),
        digests=tuple(_digest(frame, header) for line in frames for frame in line),
    )


def _lengths(declared: VoxelLengths, rule: HeaderRule) -> tuple[Lengths, dict[str, Lengths], str, float]:
    """Return the voxel lengths that are likeliest, those of each place, what is open, factor of units."""
    places = {"sform": declared.sform, "pixdim": declared.pixdim}
    chosen = declared.proposal if rule.spacing == "agree" else places[rule.spacing] or declared.proposal
    times, doubt = 1.0, ""
    if chosen is None or chosen == _UNFILLED:
        chosen, doubt = _UNFILLED, "its header has no size of voxels"
    elif rule.spacing == "agree" and declared.contradicted:
        doubt = "sform and pixdim differ"
    else:
        doubt = declared.doubt(chosen)
        _, likely = declared.in_likely_unit(chosen) or ("", chosen)
        times, chosen = likely[0] / chosen[0], likely
    in_mm = {name: vector([times * length for length in mm]) for name, mm in places.items() if mm is not None}
    return chosen, in_mm, doubt, times


def _affine(header: nifti.Header, raw: Any, lengths: Lengths, times: float) -> Array | None:
    """Return the affine to DICOM's coordinates with the voxel lengths that hold; None without a position.

    `times`: how many times as long the likely unit is as the declared one. RejectedError for a skewed one.
    """
    if header.affine is None or max(int(raw["sform_code"]), int(raw["qform_code"])) not in _PATIENT_CODES:
        return None
    affine = header.affine.copy()
    affine[:3] *= UNITS_MM.get(int(raw["xyzt_units"]) & 7, 1.0) * times
    columns = np.linalg.norm(affine[:3, :3], axis=0)
    if not all(0 < length < 1000 for length in columns):
        raise RejectedError(Reason.NO_POSITION, "an axis without length")
    directions = affine[:3, :3] / columns
    if abs(float(directions[:, 0] @ directions[:, 1])) > _PARALLEL:
        raise RejectedError(Reason.NO_POSITION, "rows and columns are not at right angles")
    if abs(float(np.linalg.det(directions))) < 0.5:
        raise RejectedError(Reason.NO_POSITION, "slices lie in their own plane")
    if float(np.abs(affine[:3, 3]).max()) > 10_000:
        raise RejectedError(Reason.NO_POSITION, "more than 10 m from the scanner")
    if header.lengths.sform is not None:
        affine[:3, :3] *= np.array(lengths) / columns
    return np.diag([-1.0, -1.0, 1.0, 1.0]) @ affine


def _read(place: Path) -> tuple[nifti.Header, Any, Array]:
    """Read header and frames (slice, phase, row, column); check the declared size before reading."""
    if place.name.lower().endswith(_PAIR_SUFFIXES):
        raise RejectedError(Reason.BAD_SHAPE, _PAIR)
    size, head = place.stat().st_size, read_start(place, nifti.START_BYTES)
    raw = _raw(head)
    shape = _checked_shape(raw)
    header = nifti.parse_header(head)
    if header.n_bytes > size * (_MOST_RATIO if head.startswith(nifti.GZIP_MAGIC) else 1):
        raise RejectedError(Reason.BROKEN_FILE, "its shape does not fit into the file")
    if size > header.n_bytes + nifti.MOST_EXTENSION:
        raise RejectedError(Reason.BROKEN_FILE, "much larger than its header says")
    if not math.isfinite(header.slope) or not math.isfinite(header.inter) or header.slope == 0:
        raise RejectedError(Reason.BROKEN_FILE, "its rescale slope or intercept")
    flat = nifti.voxels(read_bytes(place, _MOST_BYTES), header)
    voxels = flat.reshape((*shape, 1, 1)[:4], order="F").transpose(2, 3, 1, 0)
    if voxels.dtype.kind == "f" and not np.isfinite(voxels).all():
        raise RejectedError(Reason.BROKEN_FILE, "some voxels are NaN or infinite; write 0 in their place")
    return header, raw, voxels.astype(voxels.dtype.newbyteorder("="), copy=False)


def _checked_shape(raw: Any) -> tuple[int, ...]:
    """Return the shape of a header; RejectedError for one that is of no grey picture of the body."""
    if int(raw["datatype"]) not in _GREY_KINDS or int(raw["intent_code"]) in _FIELDS:
        detail = "complex, coloured or extended voxels, or a field of vectors"
        raise RejectedError(Reason.BROKEN_FILE, detail)
    shape = tuple(map(int, raw.get_data_shape()))
    if not shape or any(length < 1 for length in shape):
        raise RejectedError(Reason.NO_IMAGE, "no pixels")
    if math.prod(shape) > MOST_VOXELS or math.prod(shape[2:]) > MOST_FRAMES:
        raise RejectedError(Reason.BAD_SHAPE, "more voxels or frames than any heart")
    if len(shape) < 2 or math.prod(shape[4:]) > 1:
        raise RejectedError(Reason.BAD_SHAPE, f"{len(shape)} axes")
    if fault := nifti.settle_rotation(raw.copy()):
        raise RejectedError(Reason.NO_POSITION, fault)
    return shape


def _raw(head: bytes) -> Any:
    """Parse nibabel's header, unchecked, for the texts and codes that `nifti.Header` omits."""
    block = head
    if head.startswith(nifti.GZIP_MAGIC):
        block, _ = gzip_stream.start_of(head, nifti.HEADER_BYTES)
    if block[344:348] == b"ni1\0" or block[4:8] == b"ni2\0":
        raise RejectedError(Reason.BAD_SHAPE, _PAIR)
    if block[344:348] == b"n+1\0":
        return Nifti1Header(block[:348], check=False)
    if block[4:8] == b"n+2\0" and len(block) >= nifti.HEADER_BYTES:
        return Nifti2Header(block[: nifti.HEADER_BYTES], check=False)
    raise RejectedError(Reason.BROKEN_FILE, "no NIfTI magic bytes")


def _is_straight(matrix: Array) -> bool:
    """Return whether a grid is aligned with the scanner axes, as no view of the heart is."""
    directions = np.abs(matrix[:3, :3] / np.linalg.norm(matrix[:3, :3], axis=0))
    return bool((directions.max(axis=0) > _STRAIGHT).all())


def _phase_ms(raw: Any) -> float | None:
    """Return milliseconds between phases; None if the header has no value or a writer's default."""
    step, unit = abs(float(raw["pixdim"][4])), int(raw["xyzt_units"]) & 56
    if not math.isfinite(step) or step in (0.0, 1.0):
        return None
    return step * _MS.get(unit, 1.0 if step > 10 else 1000.0)


def _has_few_values(voxels: Array) -> bool:
    """Return whether a volume has as few values as a mask."""
    sample = voxels.reshape(-1)
    if len(np.unique(sample[:: max(sample.size // 100_000, 1)])) > _FEW:
        return False
    values = np.unique(sample)
    return 1 < len(values) <= _FEW and bool((values == np.round(values)).all())


def _digest(frame: Array, header: nifti.Header) -> str:
    """Hash a frame's intensities independently of their stored type."""
    scaled = np.ascontiguousarray((frame * header.slope + header.inter).astype(np.float32))
    return hashlib.sha256(scaled.tobytes()).hexdigest()
