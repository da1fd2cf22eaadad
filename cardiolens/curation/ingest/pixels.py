"""The stored values of frames and masks, without any bits outside the image; and stacks of them.

A file is decoded when one of its frames is first read, and kept until `forget`, at the end of its study.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from pydicom.dataset import Dataset

from cardiolens.base.untrusted import dicom_file
from cardiolens.curation.ingest.dicom import read_dataset
from cardiolens.curation.ingest.frame_records import Frame, Image, RejectedError, Stack, broken
from cardiolens.curation.ingest.nifti_file import frames_at
from cardiolens.curation.ingest.reasons import Reason


@cache
def _decoded(place: Path, *, nifti: bool) -> Frame | RejectedError:
    """Decode all frames of a file of DICOM or NIfTI, or return why it cannot be decoded."""
    try:
        with broken():
            return frames_at(place) if nifti else _dicom_frames(read_dataset(place, pixels=True))
    except RejectedError as error:
        return error


forget = _decoded.cache_clear


def _frame(place: Path, number: int, image: Image, *, nifti: bool) -> Frame:
    """Return a frame of a file, of an image's size; RejectedError if it cannot be read."""
    frames = _decoded(place, nifti=nifti)
    if isinstance(frames, RejectedError):
        raise frames.with_traceback(None)
    if number >= len(frames) or frames.shape[1:] != (image.rows, image.columns):
        raise RejectedError(Reason.BROKEN_FILE, "fewer frames or another matrix than the header says")
    frame: Frame = frames[number]
    return frame


def pixels_of(image: Image) -> Frame:
    """Return a frame's stored values (row, column); RejectedError if they cannot be read."""
    return _frame(image.place, image.frame, image, nifti=image.nifti is not None)


def mask_of(image: Image) -> Frame:
    """Return the labels of a frame (row, column), 0 without a mask; RejectedError if unreadable."""
    if image.mask is None:
        return np.zeros((image.rows, image.columns), np.int16)
    labels = _frame(image.mask.place, image.mask.frame, image, nifti=True)
    if not np.array_equal(labels, np.round(labels)) or labels.min() < 0 or labels.max() >= 1 << 15:
        raise RejectedError(Reason.MASK, "holds values that are no labels")
    checked: Frame = labels.astype(np.int16)
    return checked


def _dicom_frames(dataset: Dataset) -> Frame:
    if "PixelData" not in dataset:
        raise RejectedError(Reason.NO_IMAGE, "no pixels")
    frames = dicom_file.frames_of(dataset)
    frames = frames[None] if frames.ndim == 2 else frames
    unused = frames.dtype.itemsize * 8 - int(dataset.BitsStored)
    if frames.dtype.kind in "iu" and unused > 0:  # old overlays there may contain text
        frames = np.right_shift(np.left_shift(frames, unused), unused)
    return frames


def stacked_masks(stack: Stack) -> Frame:
    """Stack masks as (slice, phase, row, column); RejectedError if one cannot be read."""
    return np.array([[mask_of(image) for image in line] for line in stack.grid])


def stacked(stack: Stack) -> tuple[Frame, float, float]:
    """Stack frames as (slice, phase, row, column), and return one slope and intercept for all.

    Integers stay as stored if all frames share slope and intercept; otherwise intensities are computed in a
    float type that represents every stored value.
    """
    images = list(stack.images())
    frames = [pixels_of(image) for image in images]
    scales = _scales(images)
    shape = stack.n_slices, stack.n_phases, *frames[0].shape
    if len(set(scales)) == 1:
        return _common(np.array(frames).reshape(shape)), *scales[0]
    kind = np.result_type(np.float32, *{frame.dtype for frame in frames})
    pairs = zip(frames, scales, strict=True)
    values = [(frame * slope + intercept).astype(kind) for frame, (slope, intercept) in pairs]
    return np.array(values).reshape(shape), 1.0, 0.0


def _scales(images: Sequence[Image]) -> list[tuple[float, float]]:
    """Return slope and intercept per frame: from the header, or the vendor's own if the header's differ."""
    scales = [image.scale for image in images]
    by_maker = [image.maker_scale for image in images if image.maker_scale is not None]
    return by_maker if len(set(scales)) > 1 and len(by_maker) == len(images) else scales


def one_scale(stack: Stack) -> bool:
    """Return whether intensities are certain to be comparable across a stack's frames."""
    scales = {image.scale for image in stack.images()}
    return len(scales) == 1 or all(image.maker_scale is not None for image in stack.images())


def _common(values: Frame) -> Frame:
    """Convert to the narrowest type that NIfTI readers support and that holds the values."""
    if values.dtype.kind == "f" or values.dtype.itemsize <= 2:
        return values
    low, high = int(values.min()), int(values.max())
    for kind in (np.int16, np.uint16, np.int32):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return values.astype(kind)
    return values.astype(np.float64)
