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
from cardiolens.curation.ingest.axis_order import Axes, axes_of, conventional, frames_of, squeezed
from cardiolens.curation.ingest.empty_border import Mask, check_border, with_zeros
from cardiolens.curation.ingest.image import ORDINARY, HeaderRule, RejectedError
from cardiolens.curation.ingest.mask_rings import shows_rings
from cardiolens.curation.ingest.reasons import Reason
from cardiolens.study import nifti
from cardiolens.study.volume_manifest import MOST_FRAMES, MOST_VOXELS
from cardiolens.study.voxel_lengths import UNITS_MM, Lengths, VoxelLengths

SUFFIXES = (".nii", ".nii.gz")
PAIR_SUFFIXES = (".hdr", ".img", ".hdr.gz", ".img.gz")
_HEAD = 1 << 16  # bytes that contain the header, gzipped or not
_MOST_RATIO = 1100  # largest compression of gzip: a file cannot hold a shape beyond it
_SMALLEST, _LARGEST = 16, 4096
_GREY_KINDS = {2, 4, 8, 16, 64, 256, 512, 768, 1024, 1280}
_FIELDS = {
    *range(1004, 1011),
    *range(2003, 2010),
    *range(2016, 2019),
}  # intents: vectors, matrices, warps of FSL
_PATIENT_CODES = (1, 2)  # scanner and aligned; 3 and 4 are templates of the head
_STRAIGHT = 0.9999  # cosine from which a direction equals a scanner axis
_PARALLEL = 0.02
_MS = {8: 1000.0, 16: 1.0, 24: 0.001}
_TEXTS = ("descrip", "aux_file", "db_name", "intent_name")
_FEW = 16  # most grey values of a mask
_MOST_MM = 1000.0
SPACING_FLAGS = (
    "spacing_contradicted",
    "spacing_unknown",
    "spacing_of_no_heart",
)  # a flagged stack always waits for a person
_UNFILLED = (1.0, 1.0, 1.0)  # what writers put where they know nothing

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Scan:
    """Content of a file, without its voxels."""

    place: Place
    axes: Axes
    grid: tuple[int, int, int, int]  # slices, phases, rows, columns
    affine: Array | None  # (column, row, slice) to DICOM's coordinates (left, back, head; mm)
    lengths: Lengths  # mm between columns, rows, slices
    places_mm: dict[str, Lengths]  # what each place of the header says of columns, rows and slices
    slope: float
    intercept: float
    phase_ms: float | None  # time between phases
    few_values: bool  # like a mask
    ringed: bool  # its few values are rings around cavities, as a mask of a short axis has
    flags: tuple[str, ...]
    texts: tuple[str, ...]  # names of non-empty text fields of the header
    digests: tuple[str, ...]  # of the frames' intensities, slice by slice
    middle: Array | None  # middle slice of a file with one phase
    doubt: str = ""  # on the size of voxels, in words


def is_nifti(name: str) -> bool:
    """Return whether a file has a suffix of NIfTI, single file or pair."""
    return name.lower().endswith((*SUFFIXES, *PAIR_SUFFIXES))


def scan(place: Place, *, one_phase: bool = False, rule: HeaderRule = ORDINARY) -> Scan:
    """Read a file once by what a layout says of its header; RejectedError if it holds no usable image."""
    content = _content(place, rule, one_phase=one_phase)
    axes, frames, raw = content.axes, content.frames, content.raw
    if content.missing is not None:
        check_border(frames_of(content.missing, axes))
        axes = _with_border(axes, int(content.missing.sum()), content.missing.size)
    matrix = None if content.affine is None else _matrix(content.affine, axes)
    flags = [*axes.flags, *content.flags]
    if matrix is not None and not rule.positions and _is_straight(matrix):
        matrix = None
        flags += ["stored_otherwise_than_the_layout_says"] if not _is_stored(content.facts, rule) else []
    elif matrix is None:
        flags.append("no_orientation")
        flags += ["stored_otherwise_than_the_layout_says"] if rule.stored else []
    elif _is_straight(matrix):
        flags.append("orientation_of_the_scanner")
        matrix = None
    elif content.facts.lengths.turned:
        flags.append("sform_and_qform_differ")
        matrix = None
    if not all(_SMALLEST <= side <= _LARGEST for side in frames.shape[2:]):
        raise RejectedError(Reason.BAD_MATRIX, f"{frames.shape[2]} x {frames.shape[3]}")
    return Scan(
        place=place,
        axes=axes,
        grid=(frames.shape[0], frames.shape[1], frames.shape[2], frames.shape[3]),
        affine=matrix,
        lengths=content.lengths,
        places_mm=content.places_mm,
        slope=content.facts.slope,
        intercept=content.facts.inter,
        phase_ms=_phase_ms(raw) if rule.timed else None,
        few_values=(few := _has_few_values(frames)),
        ringed=few and shows_rings(frames[:, 0]),
        flags=tuple(flags),
        texts=tuple(f"NIfTI {name}" for name in _TEXTS if _holds_text(raw, name)),
        digests=tuple(_digest(frame, content.facts) for line in frames for frame in line),
        middle=frames[len(frames) // 2, 0].copy() if frames.shape[1] == 1 else None,
        doubt=content.doubt,
    )


def frames_at(place: Place, *, one_phase: bool = False, rule: HeaderRule = ORDINARY) -> Array:
    """Read all frames as stored, slice by slice; shape (frame, row, column)."""
    frames = _content(place, rule, one_phase=one_phase).frames
    return frames.reshape(-1, *frames.shape[2:])


@dataclass(frozen=True, slots=True)
class _Content:
    """A file with its axes told apart, and what of its header holds."""

    facts: nifti.Header
    raw: Any
    axes: Axes
    frames: Array  # (slice, phase, row, column)
    lengths: Lengths  # mm between columns, rows, slices
    places_mm: dict[str, Lengths]
    affine: Array | None  # voxel to patient (RAS, mm), with the lengths that hold
    flags: tuple[str, ...]
    missing: Mask | None  # where voxels have no value
    doubt: str  # on the size of voxels, in words


def _content(place: Place, rule: HeaderRule, *, one_phase: bool) -> _Content:
    facts, raw, voxels, missing = _read(place)
    lengths, flags = _lengths(facts.lengths, rule)
    times, doubt = 1.0, ""
    if lengths is not None and not flags and rule.spacing_mm is None:
        doubt = facts.lengths.doubt(lengths)
        _, likely = facts.lengths.in_likely_unit(lengths) or ("", lengths)
        times, lengths = likely[0] / lengths[0], likely
    flags = (*flags, SPACING_FLAGS[2]) if doubt else flags
    affine = _affine(facts, raw, lengths, times)
    axes, order = _axes(voxels, affine, lengths, raw, rule, one_phase=one_phase)
    edges = lengths or (1.0, 1.0, 1.0)
    by_axis = edges[order[0]], edges[order[1]], edges[order[2]]
    if rule.spacing_mm is not None and affine is None:
        by_axis = rule.spacing_mm
    declared = {"sform": facts.lengths.sform, "pixdim": facts.lengths.pixdim}
    places = {
        name: (times * value[order[0]], times * value[order[1]], times * value[order[2]])
        for name, value in declared.items()
        if value is not None
    }
    frames = frames_of(voxels, axes)
    return _Content(facts, raw, axes, frames, by_axis, places, affine, flags, missing, doubt)


def _lengths(declared: VoxelLengths, rule: HeaderRule) -> tuple[Lengths | None, tuple[str, ...]]:
    """Return the voxel lengths that hold, and a flag if the header contradicts itself."""
    stated = rule.spacing_mm
    if stated is not None:
        places = [lengths for lengths in (declared.sform, declared.pixdim) if lengths is not None]
        differ = any(not declared.equal(stated, lengths) for lengths in places)
        return stated, ("spacing_stated_against_header",) if differ else ()
    if rule.spacing != "agree":
        chosen = declared.pixdim if rule.spacing == "pixdim" else declared.sform
        flags = (f"spacing_by_{rule.spacing}_against_the_other",) if declared.contradicted else ()
        lengths = chosen or declared.proposal
        return lengths, SPACING_FLAGS[1:2] if lengths in (None, _UNFILLED) else flags
    if declared.contradicted:
        return declared.proposal, SPACING_FLAGS[:1]
    return declared.proposal, SPACING_FLAGS[1:2] if declared.proposal in (None, _UNFILLED) else ()


def _affine(
    facts: nifti.Header, raw: Any, lengths: Lengths | None, times: float
) -> NDArray[np.float64] | None:
    """Return the affine in mm with the voxel lengths that hold; None if the header holds no position.

    `times`: how many times as long the likely unit is as the declared one.
    """
    code = max(int(raw["sform_code"]), int(raw["qform_code"]))
    if facts.affine is None or code not in _PATIENT_CODES:
        return None
    affine = facts.affine.copy()
    affine[:3] *= UNITS_MM.get(int(raw["xyzt_units"]) & 7, 1.0) * times
    columns = np.linalg.norm(affine[:3, :3], axis=0)
    if not all(0 < length < _MOST_MM for length in columns):
        raise RejectedError(Reason.BAD_POSITION, "an axis without length")
    if lengths is not None and facts.lengths.sform is not None:
        affine[:3, :3] *= np.array(lengths) / columns
    return affine


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
        if int(raw["intent_code"]) in _FIELDS:
            raise RejectedError(Reason.BAD_VOXELS, "a field of vectors or coefficients by its intent code")
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
        if fault := nifti.settle_rotation(raw.copy()):
            raise RejectedError(Reason.BAD_POSITION, fault)
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
    voxels: Array,
    affine: Array | None,
    lengths: Lengths | None,
    raw: Any,
    rule: HeaderRule,
    *,
    one_phase: bool,
) -> tuple[Axes, tuple[int, int, int]]:
    """Return the axes of a file, and which lengths belong to column, row and slice."""
    if rule.xyzt:
        axes = conventional(voxels)
        return axes, _columns(axes)
    steps = lengths if lengths is not None and all(0 < value < 100 for value in lengths) else None
    slice_axis = (int(raw["dim_info"]) >> 4 & 3) - 1
    sliced = slice_axis if slice_axis >= 0 else None
    axis_lengths = steps if affine is not None or (steps is not None and len(set(steps)) > 1) else None
    axes = axes_of(
        voxels, axis_lengths, sliced=sliced, step=1.0 if steps is None else steps[2], one_phase=one_phase
    )
    return axes, _columns(axes)


def _columns(axes: Axes) -> tuple[int, int, int]:
    """Return which columns of the affine belong to column, row and slice."""
    if axes.time is not None and axes.time < 3 and axes.across is not None:
        spatial = axes.spatial
        row_axis, column_axis = (spatial.index(axis) for axis in axes.plane)
        return row_axis, column_axis, spatial.index(axes.across)
    row_axis, column_axis = axes.plane
    return row_axis, column_axis, 3 - row_axis - column_axis


def _matrix(affine: Array, axes: Axes) -> Array:
    """Convert an affine to DICOM's coordinates (mm) by (column, row, slice); RejectedError if skewed."""
    order = _columns(axes)
    matrix = np.diag([-1.0, -1.0, 1.0, 1.0]) @ affine
    matrix = matrix[:, [*order, 3]]
    directions = matrix[:3, :3] / np.linalg.norm(matrix[:3, :3], axis=0)
    if abs(float(directions[:, 0] @ directions[:, 1])) > _PARALLEL:
        raise RejectedError(Reason.BAD_POSITION, "rows and columns are not at right angles")
    if abs(float(np.linalg.det(directions))) < 0.5:
        raise RejectedError(Reason.BAD_POSITION, "slices lie in their own plane")
    if float(np.abs(matrix[:3, 3]).max()) > 10_000:
        raise RejectedError(Reason.BAD_POSITION, "more than 10 m from the scanner")
    return matrix


def _is_stored(facts: nifti.Header, rule: HeaderRule) -> bool:
    """Return whether columns and rows point where a layout says, as an affine that is no position tells."""
    if not rule.stored or facts.affine is None:
        return True
    axes = np.diag([-1.0, -1.0, 1.0]) @ facts.affine[:3, :2]
    names = (("L", "R"), ("P", "A"), ("H", "F"))
    directions = [names[int(np.abs(axis).argmax())][int(axis[np.abs(axis).argmax()] < 0)] for axis in axes.T]
    return "".join(directions) == rule.stored


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


def _holds_text(raw: Any, name: str) -> bool:
    return name in raw.keys() and bool(bytes(raw[name].tobytes()).strip(b"\0 "))  # noqa: SIM118 - no mapping


def _digest(frame: Array, facts: nifti.Header) -> str:
    """Hash a frame's intensities independently of their stored type."""
    scaled = np.ascontiguousarray((frame * facts.slope + facts.inter).astype(np.float32))
    return hashlib.sha256(scaled.tobytes()).hexdigest()
