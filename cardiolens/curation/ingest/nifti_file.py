"""Read one NIfTI file: bounded header, position in the patient, voxels as frames.

Only shape, type, scaling, affine, time step and slice axis of the header are used; description, names and
extensions never leave this module.
"""

import hashlib
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardiolens.base.untrusted import gzip_stream
from cardiolens.base.untrusted.file_place import Place
from cardiolens.curation.ingest.axis_order import Axes, axes_of, frames_of, squeezed
from cardiolens.curation.ingest.empty_border import Mask, check_border, with_zeros
from cardiolens.curation.ingest.image import RejectedError
from cardiolens.curation.ingest.mask_rings import shows_rings
from cardiolens.curation.ingest.reasons import Reason
from cardiolens.study import nifti
from cardiolens.study.manifest import MOST_FRAMES, MOST_VOXELS

SUFFIXES = (".nii", ".nii.gz")
PAIR_SUFFIXES = (".hdr", ".img", ".hdr.gz", ".img.gz")
_HEAD = 1 << 16  # bytes that contain the header, gzipped or not
_MOST_RATIO = 1100  # largest compression of gzip: a file cannot hold a shape beyond it
_SMALLEST, _LARGEST = 16, 4096
_GREY_KINDS = {2, 4, 8, 16, 64, 256, 512, 768, 1024, 1280}
_PATIENT_CODES = (1, 2)  # scanner and aligned; 3 and 4 are templates of the head
_STRAIGHT = 0.9999  # cosine from which a direction equals a scanner axis
_PARALLEL = 0.02
_MM = {1: 1000.0, 2: 1.0, 3: 0.001}
_MS = {8: 1000.0, 16: 1.0, 24: 0.001}
_TEXTS = ("descrip", "aux_file", "db_name", "intent_name")
_FEW = 16  # most grey values of a mask
_SAME_PLACE_MM = 1.0

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Scan:
    """Content of a file, without its voxels."""

    place: Place
    axes: Axes
    grid: tuple[int, int, int, int]  # slices, phases, rows, columns
    affine: Array | None  # (column, row, slice) to DICOM's coordinates (left, back, head; mm)
    lengths: tuple[float, float, float]  # mm between columns, rows, slices
    slope: float
    intercept: float
    phase_ms: float | None  # time between phases
    few_values: bool  # like a mask
    ringed: bool  # its few values are rings around cavities, as a mask of a short axis has
    flags: tuple[str, ...]
    texts: tuple[str, ...]  # names of non-empty text fields of the header
    digests: tuple[str, ...]  # of the frames' intensities, slice by slice
    middle: Array | None  # middle slice of a file with one phase


def is_nifti(name: str) -> bool:
    """Return whether a file has a suffix of NIfTI, single file or pair."""
    return name.lower().endswith((*SUFFIXES, *PAIR_SUFFIXES))


def scan(place: Place, *, one_phase: bool = False) -> Scan:
    """Read a file once; RejectedError if it holds no usable image."""
    facts, raw, voxels, missing = _read(place)
    if (affine := facts.affine) is not None and max(
        int(raw["sform_code"]), int(raw["qform_code"])
    ) not in _PATIENT_CODES:
        affine = None
    unit = _MM.get(int(raw["xyzt_units"]) & 7, 1.0)
    pixdim = [abs(float(value)) * unit for value in raw["pixdim"][1:4]]
    axes, lengths = _axes(voxels, affine, unit, pixdim, raw, one_phase=one_phase)
    frames = frames_of(voxels, axes)
    if missing is not None:
        check_border(frames_of(missing, axes))
        axes = _with_border(axes, int(missing.sum()), missing.size)
    matrix = None if affine is None else _matrix(affine, axes, unit)
    flags = list(axes.flags)
    if matrix is None:
        flags.append("no_orientation")
    elif _is_straight(matrix):
        flags.append("orientation_of_the_scanner")
        matrix = None
    elif _forms_differ(raw):
        flags.append("sform_and_qform_differ")
        matrix = None
    if not all(_SMALLEST <= side <= _LARGEST for side in frames.shape[2:]):
        raise RejectedError(Reason.BAD_MATRIX, f"{frames.shape[2]} x {frames.shape[3]}")
    return Scan(
        place=place,
        axes=axes,
        grid=(frames.shape[0], frames.shape[1], frames.shape[2], frames.shape[3]),
        affine=matrix,
        lengths=lengths,
        slope=facts.slope,
        intercept=facts.inter,
        phase_ms=_phase_ms(raw),
        few_values=(few := _has_few_values(voxels)),
        ringed=few and shows_rings(frames[:, 0]),
        flags=tuple(flags),
        texts=tuple(f"NIfTI {name}" for name in _TEXTS if bytes(raw[name].tobytes()).strip(b"\0 ")),
        digests=tuple(_digest(frame, facts) for line in frames for frame in line),
        middle=frames[len(frames) // 2, 0].copy() if frames.shape[1] == 1 else None,
    )


def frames_at(place: Place, *, one_phase: bool = False) -> Array:
    """Read all frames as stored, slice by slice; shape (frame, row, column)."""
    facts, raw, voxels, _ = _read(place)
    unit = _MM.get(int(raw["xyzt_units"]) & 7, 1.0)
    pixdim = [abs(float(value)) * unit for value in raw["pixdim"][1:4]]
    affine = facts.affine
    if max(int(raw["sform_code"]), int(raw["qform_code"])) not in _PATIENT_CODES:
        affine = None
    axes, _ = _axes(voxels, affine, unit, pixdim, raw, one_phase=one_phase)
    frames = frames_of(voxels, axes)
    return frames.reshape(-1, *frames.shape[2:])


def _with_border(axes: Axes, n_missing: int, n_voxels: int) -> Axes:
    """Flag a volume whose border holds no values, and say how many."""
    sentence = f"{n_missing} of {n_voxels} voxels, at the border, hold no value and are set to 0"
    evidence = f"{axes.evidence}; {sentence}" if axes.evidence else sentence
    return replace(axes, flags=(*axes.flags, "no_value_at_the_border"), evidence=evidence)


def _read(place: Place) -> tuple[nifti.Header, Any, Array, Mask | None]:
    """Read header and voxels, and where voxels have no value; check the declared size before reading."""
    with _damaged():
        size, head = _head(place)
        raw = _raw(head)
        if int(raw["datatype"]) not in _GREY_KINDS:
            raise RejectedError(Reason.BAD_VOXELS)
        shape = tuple(map(int, raw.get_data_shape()))
        if not shape or any(length < 1 for length in shape):
            raise RejectedError(Reason.NO_PIXELS)
        if math.prod(shape) > MOST_VOXELS or math.prod(shape[2:]) > MOST_FRAMES:
            raise RejectedError(Reason.TOO_MANY_VOXELS)
        if (
            len([length for length in shape[3:] if length > 1]) > 1
            or len(shape) < 2
            or math.prod(shape[4:]) > 1
        ):
            raise RejectedError(Reason.BAD_AXES, f"{len(shape)} axes")
        facts = nifti.parse_header(head)
        gzipped = head.startswith(nifti.GZIP_MAGIC)
        if facts.n_bytes > size * (_MOST_RATIO if gzipped else 1):
            raise RejectedError(Reason.BROKEN_NIFTI, "its shape does not fit into the file")
        if size > facts.n_bytes + nifti.MOST_EXTENSION:
            raise RejectedError(Reason.TOO_LARGE)
        stored = place.read()
        flat = nifti.voxels(stored, facts)
        flat, missing = with_zeros(flat)
        if not math.isfinite(facts.slope) or not math.isfinite(facts.inter) or facts.slope == 0:
            raise RejectedError(Reason.BAD_RESCALE)
        voxels = squeezed(flat.reshape(shape, order="F"))
        gaps = None if missing is None else squeezed(missing.reshape(shape, order="F"))
        return facts, raw, voxels.astype(voxels.dtype.newbyteorder("="), copy=False), gaps


@contextmanager
def _damaged() -> Iterator[None]:
    """Turn the readers' errors on a damaged file into one reason; drop messages, which may quote the file."""
    try:
        yield
    except (RejectedError, MemoryError):
        raise
    except OSError as error:
        raise RejectedError(Reason.UNREADABLE, type(error).__name__) from None
    except Exception as error:  # noqa: BLE001 - nibabel, zlib and zipfile raise a dozen kinds
        raise RejectedError(Reason.BROKEN_NIFTI, type(error).__name__) from None


def _head(place: Place) -> tuple[int, bytes]:
    """Return the size of a file and its first bytes."""
    return place.size(), place.read_start(_HEAD)


def _raw(head: bytes) -> Any:
    """Parse nibabel's header, unchecked, for the texts and codes that `nifti.Header` omits."""
    from nibabel.nifti1 import Nifti1Header
    from nibabel.nifti2 import Nifti2Header

    block = head
    if head.startswith(nifti.GZIP_MAGIC):
        block, _ = gzip_stream.start_of(head, nifti.HEADER_BYTES)
    if block[344:348] == b"ni1\0" or block[4:8] == b"ni2\0":
        raise RejectedError(Reason.NIFTI_PAIR)
    if block[344:348] == b"n+1\0":
        return Nifti1Header(block[:348], check=False)
    if block[4:8] == b"n+2\0" and len(block) >= nifti.HEADER_BYTES:
        return Nifti2Header(block[: nifti.HEADER_BYTES], check=False)
    raise RejectedError(Reason.BROKEN_NIFTI, "no NIfTI magic bytes")


def _axes(
    voxels: Array, affine: Array | None, unit: float, pixdim: list[float], raw: Any, *, one_phase: bool
) -> tuple[Axes, tuple[float, float, float]]:
    columns = None if affine is None else [float(v) for v in np.linalg.norm(affine[:3, :3], axis=0) * unit]
    if columns is not None and not all(0 < length < 1000 for length in columns):
        raise RejectedError(Reason.BAD_POSITION, "an axis without length")
    steps = columns or [value if 0 < value < 100 else 1.0 for value in pixdim]
    slice_axis = (int(raw["dim_info"]) >> 4 & 3) - 1
    sliced = slice_axis if slice_axis >= 0 else None
    lengths = steps if columns is not None or len(set(steps)) > 1 else None
    axes = axes_of(voxels, lengths, sliced=sliced, step=steps[2], one_phase=one_phase)
    order = _columns(axes)
    across = steps[order[2]]
    return axes, (steps[order[0]], steps[order[1]], across)


def _columns(axes: Axes) -> tuple[int, int, int]:
    """Return which columns of the affine belong to column, row and slice."""
    if axes.time is not None and axes.time < 3 and axes.across is not None:
        spatial = axes.spatial
        row_axis, column_axis = (spatial.index(axis) for axis in axes.plane)
        return row_axis, column_axis, spatial.index(axes.across)
    row_axis, column_axis = axes.plane
    return row_axis, column_axis, 3 - row_axis - column_axis


def _matrix(affine: Array, axes: Axes, unit: float) -> Array:
    """Convert an affine to DICOM's coordinates (mm) by (column, row, slice); RejectedError if skewed."""
    order = _columns(axes)
    matrix = np.diag([-1.0, -1.0, 1.0, 1.0]) @ affine
    matrix[:3] *= unit
    matrix = matrix[:, [*order, 3]]
    directions = matrix[:3, :3] / np.linalg.norm(matrix[:3, :3], axis=0)
    if abs(float(directions[:, 0] @ directions[:, 1])) > _PARALLEL:
        raise RejectedError(Reason.BAD_POSITION, "rows and columns are not at right angles")
    if abs(float(np.linalg.det(directions))) < 0.5:
        raise RejectedError(Reason.BAD_POSITION, "slices lie in their own plane")
    if float(np.abs(matrix[:3, 3]).max()) > 10_000:
        raise RejectedError(Reason.BAD_POSITION, "more than 10 m from the scanner")
    return matrix


def _is_straight(matrix: Array) -> bool:
    """Return whether a grid is aligned with the scanner axes, as no view of the heart is."""
    directions = np.abs(matrix[:3, :3] / np.linalg.norm(matrix[:3, :3], axis=0))
    return bool((directions.max(axis=0) > _STRAIGHT).all())


def _forms_differ(raw: Any) -> bool:
    """Return whether sform and qform both refer to the patient but disagree on the position."""
    if not all(int(raw[name]) in _PATIENT_CODES for name in ("sform_code", "qform_code")):
        return False
    sform, qform = raw.get_sform(), raw.get_qform()
    corners = np.array([[0, 0, 0, 1], [32, 0, 0, 1], [0, 32, 0, 1], [0, 0, 1, 1]]).T
    return bool(np.abs((sform - qform) @ corners).max() > _SAME_PLACE_MM)


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


def _digest(frame: Array, facts: nifti.Header) -> str:
    """Hash a frame's intensities independently of their stored type."""
    scaled = np.ascontiguousarray((frame * facts.slope + facts.inter).astype(np.float32))
    return hashlib.sha256(scaled.tobytes()).hexdigest()
