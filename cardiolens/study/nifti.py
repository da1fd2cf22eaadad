"""Read NIfTI files as bytes: header, voxels, gzip. Only `volume` knows the meaning of the axes."""

import hashlib
import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted import gzip_stream
from cardiolens.base.untrusted.bounded_files import MOST_BYTES, read_bytes, read_start

UNITS_MM = {0: 1.0, 1: 1000.0, 2: 1.0, 3: 0.001}  # NIfTI's codes of metre, mm, micron; 0: not declared
_ALIKE = 0.01  # largest relative difference of two lengths that count as equal
_TURNED_MM = 1.0  # largest distance of a voxel by the two transforms

_SHORTEST_MM, _LONGEST_MM = 0.1, 60.0  # of a voxel's edge
_USUAL_MM = 0.35, 10.0  # of the middle one of its edges
_LIKELY_MM = {"mm": 1.0, "cm": 10.0, "m": 1000.0, "micron": 0.001}  # units that writers use, likeliest first

Lengths = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class VoxelLengths:
    """Lengths of the first three axes in mm by place; None where the place declares none.

    The columns of the sform are one place, `pixdim` is the other; the qform takes its lengths from `pixdim`.
    Some writers left unit columns in the sform beside true lengths in `pixdim` (ACDC and EMIDEC), so neither
    is believed against the other.
    """

    sform: Lengths | None
    pixdim: Lengths | None
    turned: bool = False  # sform and qform agree on the lengths and place the voxels differently
    single: tuple[bool, bool, bool] = (False, False, False)  # axes of one voxel: a length without meaning
    unit_mm: float = 1.0  # as declared
    layers: Lengths | None = None  # between layers by the sform: shorter than its columns if it is sheared

    @property
    def contradicted(self) -> bool:
        """Whether sform and pixdim declare different lengths along an axis of several voxels."""
        if self.sform is None or self.pixdim is None:
            return False
        alike = self.alike(self.sform, self.pixdim)
        return not all(single or same for single, same in zip(self.single, alike, strict=True))

    def alike(self, lengths: Lengths, declared: Lengths) -> list[bool]:
        """Return by axis whether lengths, or the distances of layers, are the declared ones."""
        axes = zip(lengths, self.layers or lengths, declared, strict=True)
        return [any(math.isclose(mm, to, rel_tol=_ALIKE) for mm in measured) for *measured, to in axes]

    @property
    def proposal(self) -> Lengths | None:
        """The more credible lengths: unit lengths are a writer's default; else those of the sform."""
        places = [lengths for lengths in (self.sform, self.pixdim) if lengths is not None]
        return next((lengths for lengths in places if lengths != (1.0, 1.0, 1.0)), (*places, None)[0])

    def in_likely_unit(self, lengths: Lengths) -> tuple[str, Lengths] | None:
        """Return the unit in which lengths are those of a body, and they in mm; None if none is.

        An empty unit is the declared one.
        """
        for unit, mm in {"": self.unit_mm, **_LIKELY_MM}.items():
            likely = _rounded(np.array(lengths) * mm / self.unit_mm)
            if self._is_of_body(likely):
                return unit, likely
        return None

    def doubt(self, lengths: Lengths) -> str:
        """Return why lengths are of no picture of the body, with those of the likely unit; else nothing."""
        sentence = f"voxels of {in_words(lengths)} make no picture of a body"
        match self.in_likely_unit(lengths):
            case None:
                return sentence
            case "", _:
                return ""
            case unit, likely:
                return f"{sentence}; in {unit} they would have {in_words(likely)}"

    def _is_of_body(self, lengths_mm: Lengths) -> bool:
        """Return whether voxels are as large as those of a picture of a body."""
        edges = sorted(mm for mm, single in zip(lengths_mm, self.single, strict=True) if not single) or [1.0]
        in_range = edges[0] >= _SHORTEST_MM and edges[-1] <= _LONGEST_MM
        return in_range and _USUAL_MM[0] <= edges[(len(edges) - 1) // 2] <= _USUAL_MM[1]

    @property
    def words(self) -> str:
        """What each place says."""
        places = (("sform", self.sform), ("pixdim", self.pixdim))
        return ", ".join(f"{name} {in_words(lengths)}" for name, lengths in places if lengths is not None)


def in_words(lengths: Sequence[float]) -> str:
    """Return lengths as `1.5 x 1.5 x 10 mm`."""
    return " x ".join(f"{length:.4g}" for length in lengths) + " mm"


def voxel_lengths(header: Any) -> VoxelLengths:
    """Return the voxel lengths that nibabel's header declares."""
    unit = UNITS_MM.get(int(header["xyzt_units"]) & 7)
    shape = [*map(int, header.get_data_shape()), 1, 1, 1][:3]
    single = (shape[0] == 1, shape[1] == 1, shape[2] == 1)
    if unit is None:
        return VoxelLengths(None, None, single=single)
    has_sform = int(header["sform_code"]) > 0
    sform = np.asarray(header.get_sform(), np.float64) if has_sform else None
    lengths = VoxelLengths(
        sform=None if sform is None else _lengths(np.linalg.norm(sform[:3, :3], axis=0), unit),
        layers=None if sform is None else _lengths(between_layers(sform), unit),
        pixdim=_lengths(np.abs(np.asarray(header["pixdim"][1:4], np.float64)), unit),
        single=single,
        unit_mm=unit,
    )
    if sform is None or int(header["qform_code"]) == 0 or lengths.contradicted:
        return lengths
    return replace(lengths, turned=_is_turned(header, sform, unit))


def between_layers(affine: Any) -> Any:
    """Return the distances between layers of voxels along each axis; NaN without a volume."""
    edges = np.asarray(affine, np.float64)[:3, :3].T
    faces = [np.linalg.norm(np.cross(edges[k - 2], edges[k - 1])) for k in range(3)]
    with np.errstate(divide="ignore", invalid="ignore"):
        return abs(np.linalg.det(edges)) / np.array(faces)


def _lengths(edges: Any, unit: float) -> Lengths | None:
    if not (np.isfinite(edges).all() and (edges > 0).all()):
        return None
    return _rounded(np.asarray(edges) * unit)


def _rounded(lengths: Any) -> Lengths:
    i, j, k = (float(f"{float(length):.6g}") for length in lengths)  # headers store 24-bit precision
    return i, j, k


def _is_turned(header: Any, sform: Any, unit: float) -> bool:
    try:
        qform = np.asarray(header.get_qform(), np.float64)
        unsheared = header.copy()
        unsheared.set_qform(sform)  # which holds no shear
        sform = np.asarray(unsheared.get_qform(), np.float64)
    except Exception:  # noqa: BLE001 - nibabel raises several kinds for quaternions that are none
        return False
    corners = np.array([[0, 0, 0, 1], [32, 0, 0, 1], [0, 32, 0, 1], [0, 0, 1, 1]]).T
    return bool(np.abs((sform - qform) @ corners).max() * unit > _TURNED_MM)


GZIP_MAGIC = gzip_stream.MAGIC
HEADER_BYTES = 540  # header size of NIfTI-2, which exceeds that of NIfTI-1
MOST_EXTENSION = 64 << 20  # bytes between header and voxels, or after the voxels
START_BYTES = 64 << 10  # the start of a file that contains the header, also if gzipped
NOT_NIFTI = "expected a single-file NIfTI (.nii or .nii.gz); convert the file"
_FREE_BYTES = 256 << 20  # to which any gzip file may unpack; larger masks are stored without gzip
_MOST_RATIO = 100  # of what unpacks to more
_LONGEST_QUATERNION = 1.001  # by rounding
_SILENT = logging.getLogger(f"{__name__}.fixes")  # nibabel reports what it fixes without the name of the file
_SILENT.disabled = True


@dataclass(frozen=True, slots=True)
class Header:
    """Voxel properties from a NIfTI header; intensity = stored * slope + inter."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int  # bytes before the first voxel
    slope: float
    inter: float
    affine: NDArray[np.float64] | None  # voxel to patient (RAS, mm); None if not declared
    spacing_mm: tuple[float, float, float] | None  # of the first three axes; None if not declared
    lengths: VoxelLengths  # by the places that declare them

    @property
    def n_bytes(self) -> int:
        return self.offset + math.prod(self.shape) * self.dtype.itemsize


def read_file(path: Path, most: int = MOST_BYTES) -> bytes:
    """Read the bytes of a file as stored, at most `most`; InputError if the file cannot be read."""
    with _readable():
        return read_bytes(path, most)


def read_header(path: Path) -> Header:
    """Read the header of a file without its voxels; InputError if the file cannot be read."""
    with _readable():
        return parse_header(read_start(path, START_BYTES))


@contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        remedy = "let this user read it" if isinstance(error, PermissionError) else "add it or correct path"
        raise InputError(
            f"cannot be read ({error.strerror}); expected the file that study.json names; {remedy}"
        ) from None


def sha256(stored: bytes) -> str:
    """Return the SHA-256 of a file's bytes, in the form that manifests declare."""
    return hashlib.sha256(stored).hexdigest()


def parse_header(stored: bytes) -> Header:
    """Parse the header of a NIfTI file, gzipped or not; InputError if damaged or not of real numbers."""
    from nibabel.nifti1 import Nifti1Header
    from nibabel.nifti2 import Nifti2Header
    from nibabel.spatialimages import HeaderDataError
    from nibabel.wrapstruct import WrapStructError

    block = _head(stored)
    if block[344:348] == b"n+1\0" and len(block) >= 348:
        kind, size = Nifti1Header, 348
    elif block[4:8] == b"n+2\0" and len(block) >= HEADER_BYTES:
        kind, size = Nifti2Header, HEADER_BYTES
    else:
        raise InputError(f"is not NIfTI: it starts with {block[:4]!r}; {NOT_NIFTI}")
    try:
        raw = kind(block[:size], check=False)
        raw.check_fix(_SILENT)
        if fault := settle_rotation(raw):
            raise InputError(f"{fault}; re-export it")
        header = _header(raw)
    except InputError:
        raise
    except (HeaderDataError, WrapStructError, ValueError, OverflowError) as error:
        raise InputError(f"its NIfTI header is damaged ({error}); {NOT_NIFTI}") from None
    first = size + 4  # a flag of four bytes says whether extensions follow
    if not first <= header.offset <= first + MOST_EXTENSION:
        raise InputError(
            f"its voxels begin at byte {header.offset}; expected {first}, where its header ends, or "
            f"up to {MOST_EXTENSION >> 20} MiB more; re-export it"
        )
    if header.dtype.kind not in "iuf" or header.dtype.itemsize > 8:
        raise InputError(
            f"its voxels are of type {raw.get_value_label('datatype')}; expected one real number "
            "per voxel (integers of 8 to 64 bits, floats of 32 or 64); convert it to grey values"
        )
    if header.affine is not None and not np.isfinite(header.affine).all():
        raise InputError("its affine holds NaN or infinity; expected finite numbers; re-export it")
    return header


def _head(stored: bytes) -> bytes:
    if not stored.startswith(GZIP_MAGIC):
        return stored[:HEADER_BYTES]
    block, is_whole = gzip_stream.start_of(stored, HEADER_BYTES)
    if len(block) < HEADER_BYTES and not is_whole:
        raise gzip_stream.truncated(len(block), HEADER_BYTES)
    return block


def _header(raw: Any) -> Header:
    slope, inter = raw.get_slope_inter()
    coded = int(raw["sform_code"]) > 0 or int(raw["qform_code"]) > 0
    lengths = voxel_lengths(raw)
    unfilled = not coded and lengths.pixdim == (1, 1, 1)
    return Header(
        shape=tuple(map(int, raw.get_data_shape())),
        dtype=raw.get_data_dtype(),
        offset=int(raw.get_data_offset()),
        slope=1.0 if slope is None else float(slope),
        inter=0.0 if inter is None else float(inter),
        affine=np.asarray(raw.get_best_affine(), np.float64) if coded else None,
        spacing_mm=None if unfilled else lengths.sform or lengths.pixdim,
        lengths=lengths,
    )


def settle_rotation(header: Any) -> str:
    """Shorten a quaternion that rounding made longer than 1, as NIfTI asks readers to do.

    Return what is wrong with one that is no rotation and that alone places the voxels; else nothing.
    """
    names = [f"quatern_{letter}" for letter in "bcd"]
    length = math.sqrt(sum(float(header[name]) ** 2 for name in names))
    if 1 < length <= _LONGEST_QUATERNION:
        for name in names:
            header[name] = float(header[name]) * (1 - 1e-7) / length
        return ""
    alone = int(header["qform_code"]) > 0 and int(header["sform_code"]) <= 0
    return "" if length <= 1 or not alone else f"its quaternion has length {length:.4g}; expected at most 1"


def voxels(stored: bytes, header: Header) -> NDArray[Any]:
    """Return all voxels of a file as stored, one-dimensional; the header's first axis runs fastest.

    A gzip file is read to its end, where the CRC reveals damage, but at most MOST_EXTENSION bytes beyond the
    size that the header declares.
    """
    content = stored
    if stored.startswith(GZIP_MAGIC):
        if header.n_bytes > max(_FREE_BYTES, _MOST_RATIO * len(stored)):
            raise InputError(
                f"unpacks to {header.n_bytes:,} bytes, over {_MOST_RATIO} times its size; expected voxels "
                "of an image, which gzip makes 2 to 5 times as small; store it without gzip if it is one"
            )
        content = gzip_stream.unpacked(stored, header.n_bytes, MOST_EXTENSION)
    if len(content) < header.n_bytes:
        raise InputError(
            f"holds {len(content)} bytes; expected {header.n_bytes} for shape {header.shape} of "
            f"{header.dtype.name}; copy or export it again"
        )
    return np.frombuffer(content, header.dtype, math.prod(header.shape), header.offset)
