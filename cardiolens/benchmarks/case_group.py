"""Prepare a group of cases into one part of the shards, in one worker."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from cardiolens.base.digest import digest_of
from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_bytes
from cardiolens.base.untrusted.image_file import opened
from cardiolens.benchmarks.benchmark import Source
from cardiolens.benchmarks.case import Case, CaseImage, listed
from cardiolens.benchmarks.record_files import value_at
from cardiolens.study.anatomy import CASE_IMAGES
from cardiolens.study.cohort import StudyRecord, stamp
from cardiolens.study.group import Outcome
from cardiolens.study.shards import PartWriter, frames_table, part_writer

_RULES = 1  # version of decoding; increment when it gives other pixels for the same file
_GREY = ("1", "L")
_DEEP = ("I", "F", "I;16", "I;16L", "I;16B", "I;16N")
_CLEAR = ("LA", "PA", "RGBA", "La", "RGBa")
_WHITE = 255
_MOST_BYTES = 256 << 20  # of an image file


def prepare_cases(store: Path, part: str, source: Source, cases: Sequence[Case]) -> list[Outcome]:
    """Decode the images of cases into one part."""
    with part_writer(store, part) as writer:
        return [_attempt(writer, source, case) for case in cases]


def state_of_case(source: Source, case: Case) -> str:
    """Return the digest of what a case is prepared from; of its files, their stamps."""
    images = [[image.number, image.path, image.column, image.item] for image in case.images]
    files = {source.root / image.path for image in case.images if image.path}
    files |= {image.place.path for image in case.images if image.place is not None}
    stamps = [[str(path.relative_to(source.root)), stamp(path)] for path in sorted(files)]
    return digest_of([_RULES, source.name_of(case.number), case.patient, images, dict(case.groups), stamps])


def _attempt(writer: PartWriter, source: Source, case: Case) -> Outcome:
    name = source.name_of(case.number)
    state = state_of_case(source, case)
    frames: list[NDArray[np.uint8]] = []
    n_bytes = 0
    try:
        for image in case.images:
            stored, pixels = _decoded(source, case, image)
            n_bytes += len(stored)
            frames.append(pixels)
        if sum(frame.nbytes for frame in frames) > np.iinfo(np.int32).max:
            raise InputError("its images take 2 GiB or more; expected less per case; make them smaller")
    except InputError as error:
        return Outcome(name, error=str(error))
    row = _volume_row(name, case, frames)
    writer.rows.append(writer.write(row, frames_table(row, frames)))
    record = StudyRecord(part=writer.part, state=state, subgroups=dict(case.groups))
    return Outcome(name, record, n_bytes=n_bytes)


def _decoded(source: Source, case: Case, image: CaseImage) -> tuple[bytes, NDArray[np.uint8]]:
    try:
        stored = image_bytes(source, image)
        return stored, pixels_of(stored)
    except InputError as error:
        raise InputError(f"{case.place}: {image.name} {error}") from None


def image_bytes(source: Source, image: CaseImage) -> bytes:
    """Return the encoded bytes of an image, from its file or else from the row that holds it."""
    path = source.root / image.path
    if image.path and (path.exists() or path.is_symlink()):
        if not path.resolve().is_relative_to(source.root.resolve()):
            raise InputError("leads out of the folder of the data by a link; copy the file there")
        try:
            return read_bytes(path, _MOST_BYTES)
        except OSError as error:
            raise InputError(f"cannot be read ({error.strerror}); check it and its permissions") from None
    if image.place is not None and (content := _embedded(image)):
        return content
    raise InputError("is not there; expected every image that the file names; download the images too")


def _embedded(image: CaseImage) -> bytes | None:
    """Return the image in a row: bytes, {bytes, path} or base64, alone or in a list."""
    assert image.place is not None, "only an image in a row is held"
    value = value_at(image.place, image.column)
    if isinstance(value, str) and image.item is not None:
        value = listed(value, image.column)
    if isinstance(value, list):
        is_one = image.item is not None or len(value) == 1  # a row that another one names may have several
        value = value[image.item or 0] if is_one else None
    value = value.get("bytes") if isinstance(value, Mapping) else value
    if isinstance(value, str):
        encoded = value.partition(",")[2] if value.startswith("data:") else value
        try:
            return base64.b64decode("".join(encoded.split()), validate=True)
        except (binascii.Error, ValueError):
            raise InputError("is no base64; expected an image as base64; save the file anew") from None
    return value if isinstance(value, bytes) else None


def pixels_of(stored: bytes) -> NDArray[np.uint8]:
    """Decode an image: (height, width) if it is grey, else (height, width, 3); InputError if it cannot.

    The EXIF orientation is applied. By mode: bilevel becomes black and white; 8-bit grey stays; more than 8
    bits are scaled from the lowest value as black to the highest as white; palettes, CMYK, YCbCr, Lab and HSV
    become RGB; transparent pixels get a white background. RGB with equal channels in every pixel is stored as
    grey.
    """
    try:
        with opened(stored) as image:
            number = getattr(image, "n_frames", 1)
            if number != 1 and image.format != "MPO":  # a camera's JPEG, whose further images are previews
                raise InputError(f"holds {number} images; expected one; save each as a file of its own")
            image.load()
            return _pixels(ImageOps.exif_transpose(image))
    except ValueError as error:
        raise InputError(str(error)) from None


def _pixels(image: Image.Image) -> NDArray[np.uint8]:
    if image.mode in _GREY:
        return np.asarray(image.convert("L"))
    if image.mode in _DEEP:
        return _stretched(np.asarray(image))
    if image.mode in _CLEAR or "transparency" in image.info:
        clear = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", clear.size, (_WHITE,) * 4), clear)
    rgb = np.asarray(image.convert("RGB"))
    is_grey = (rgb == rgb[..., :1]).all()
    return np.ascontiguousarray(rgb[..., 0]) if is_grey else rgb


def _stretched(deep: NDArray[np.generic]) -> NDArray[np.uint8]:
    """Scale values of more than 8 bits from lowest to highest; a constant image becomes black."""
    values = deep.astype(np.float64)
    if not np.isfinite(values).all():
        raise InputError("holds values that are no numbers; save it with 8 bits")
    low, high = values.min(), values.max()
    scaled = (values - low) * (_WHITE / (high - low)) if high > low else np.zeros_like(values)
    return np.rint(scaled).astype(np.uint8)


def _volume_row(name: str, case: Case, frames: Sequence[NDArray[np.uint8]]) -> dict[str, object]:
    """Return the row of `volumes`; images have no geometry, and no order except their slots."""
    height, width = frames[0].shape[:2]
    return {
        "study_id": name,
        "patient_id": case.patient,
        "cohort": ["full"],
        "species": "human",
        "volume_id": CASE_IMAGES,
        "sequence": CASE_IMAGES,
        "view": CASE_IMAGES,
        "n_slices": len(frames),
        "n_phases": 1,
        "height": height,
        "width": width,
        "spacing_mm": [1.0, 1.0, 1.0],
        "spatial_order": "declared",
        "key_layers": [],
        "ed_phase": 0,
        "es_phase": 0,
        "window_low": 0.0,
        "window_high": float(_WHITE),
        "source_sha256": digest_of([image.path for image in case.images]),
    }
