"""Decode the stored values of frames, without any bits outside the image."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydicom.dataset import Dataset

from cardiolens.base.untrusted import dicom_file
from cardiolens.curation.ingest.dicom import inverted_about, read_dataset
from cardiolens.curation.ingest.frame_records import Image, MaskFrame, RejectedError, Stack
from cardiolens.curation.ingest.nifti_file import frames_at
from cardiolens.curation.ingest.outlines import mask_of
from cardiolens.curation.ingest.reasons import Reason

Frame = NDArray[Any]


class PixelReader:
    """Frame reader that caches the last file, because a multi-frame file has hundreds of frames."""

    def __init__(self) -> None:
        self._place: Path | None = None
        self._frames: Frame = np.empty((0, 0, 0))

    def frame(self, image: Image) -> Frame:
        """Read a frame's stored values (row, column); RejectedError if they cannot be read."""
        if image.place != self._place:
            self._frames = np.empty((0, 0, 0))  # free the last file before the next is decoded
            self._frames = decoded(image.place, nifti=image.rule is not None)
            self._place = image.place
        return self._checked(image)

    def mask(self, mask: MaskFrame, shape: tuple[int, ...]) -> Frame:
        """Read the labels of one frame (row, column); RejectedError if they cannot be read."""
        if mask.rule is None:
            return mask_of(mask.place, mask.outer, shape)
        if mask.place != self._place:
            self._frames = np.empty((0, 0, 0))
            self._frames = _labels(decoded(mask.place, nifti=True))
            self._place = mask.place
        if mask.frame >= len(self._frames) or self._frames[mask.frame].shape != shape:
            raise RejectedError(Reason.MASK, "has other frames than its header says")
        labels: Frame = self._frames[mask.frame]
        return labels

    def _checked(self, image: Image) -> Frame:
        if image.frame >= len(self._frames):
            raise RejectedError(Reason.BROKEN_FILE, "fewer frames than the header says")
        frame: Frame = self._frames[image.frame]
        if frame.shape != (image.rows, image.columns):
            raise RejectedError(Reason.BROKEN_FILE, "another matrix than the header says")
        return frame


def _labels(frames: Frame) -> Frame:
    if not np.array_equal(frames, np.round(frames)) or frames.min() < 0 or frames.max() >= 1 << 15:
        raise RejectedError(Reason.MASK, "holds values that are no labels")
    return frames.astype(np.int32)


def decoded(place: Path, *, nifti: bool = False) -> Frame:
    """Decode all frames of a file of DICOM or NIfTI; RejectedError if it cannot be decoded."""
    try:
        return frames_at(place) if nifti else _decoded(place)
    except MemoryError:
        raise RejectedError(Reason.BROKEN_FILE, "it unpacks to too much") from None


def _decoded(place: Path) -> Frame:
    dataset = read_dataset(place, pixels=True)
    if "PixelData" not in dataset:
        raise RejectedError(Reason.NO_IMAGE, "no pixels")
    try:
        _check_length(dataset)
        values = dicom_file.frames_of(dataset)
    except (RejectedError, MemoryError):
        raise
    except (RuntimeError, NotImplementedError, ImportError) as error:
        compressed = (
            dataset.file_meta.TransferSyntaxUID.is_compressed if "file_meta" in dir(dataset) else False
        )
        missing = compressed and (
            "missing" in str(error) or ("plugin" in str(error) and "install" in str(error))
        )
        raise RejectedError(
            Reason.NO_DECODER if missing else Reason.BROKEN_FILE, type(error).__name__
        ) from None
    except Exception as error:  # noqa: BLE001 - decoders raise kinds of their own for damaged streams
        raise RejectedError(Reason.BROKEN_FILE, type(error).__name__) from None
    frames = values[None] if values.ndim == 2 else values
    frames = _own_bits(frames, dataset)
    ends = inverted_about(dataset)
    return frames if ends is None else (ends - frames.astype(np.int64)).astype(frames.dtype)


def _check_length(dataset: Dataset) -> None:
    """Refuse uncompressed pixel data shorter than the header says; pydicom would repeat or pad it."""
    if dataset.file_meta.TransferSyntaxUID.is_compressed:
        return
    frames = int(dataset.get("NumberOfFrames") or 1)
    expected = frames * int(dataset.Rows) * int(dataset.Columns) * int(dataset.BitsAllocated) // 8
    if len(dataset.PixelData) < expected:
        raise RejectedError(Reason.BROKEN_FILE, "fewer bytes than the header says")


def _own_bits(frames: Frame, dataset: Dataset) -> Frame:
    """Keep only the stored bits: the bits above may hold retired overlays, which may contain text."""
    stored, allocated = int(dataset.BitsStored), int(dataset.BitsAllocated)
    if stored == allocated or frames.dtype.kind not in "iu":
        return frames
    unused = frames.dtype.itemsize * 8 - stored
    if unused <= 0:
        return frames
    shifted: Frame = np.right_shift(np.left_shift(frames, unused), unused)
    return shifted


def masks_of(stack: Stack, reader: PixelReader) -> dict[Image, Frame]:
    """Read the masks of a stack's frames (row, column); RejectedError if one cannot be read."""
    images = [image for image in stack.images() if image.mask is not None]
    masks: dict[Image, Frame] = {}
    for image in sorted(images, key=lambda image: image.mask.place if image.mask else image.place):
        assert image.mask is not None
        masks[image] = reader.mask(image.mask, (image.rows, image.columns))
    return masks


def stacked_masks(stack: Stack, masks: Mapping[Image, Frame]) -> Frame:
    """Stack masks as (slice, phase, row, column), 0 in frames without one."""
    shape = stack.n_slices, stack.n_phases, stack.first.rows, stack.first.columns
    values = np.zeros(shape, dtype=np.int16)
    for number, line in enumerate(stack.grid):
        for phase, image in enumerate(line):
            if image in masks:
                values[number, phase] = masks[image]
    return values


def stacked(stack: Stack, frames: Mapping[Image, Frame]) -> tuple[Frame, float, float]:
    """Stack frames as (slice, phase, row, column), and return one slope and intercept for all.

    Integers stay as stored if all frames share slope and intercept; otherwise intensities are computed in a
    float type that represents every stored value.
    """
    images = list(stack.images())
    scales = common_scale(images)
    shape = stack.n_slices, stack.n_phases, *frames[images[0]].shape
    if len(set(scales)) == 1:
        return _common(np.array([frames[image] for image in images]).reshape(shape)), *scales[0]
    kind = np.result_type(np.float32, *{frames[image].dtype for image in images})
    values = [
        (frames[image] * slope + intercept).astype(kind)
        for image, (slope, intercept) in zip(images, scales, strict=True)
    ]
    return np.array(values).reshape(shape), 1.0, 0.0


def common_scale(images: Sequence[Image]) -> list[tuple[float, float]]:
    """Return slope and intercept per frame: from the header, or the vendor's own if the header's differ.

    Of frames that were inverted, equal values stay equal under scales that differ.
    """
    scales = [(image.slope, image.intercept) for image in images]
    by_maker = [image.maker_scale for image in images if image.maker_scale is not None]
    scales = by_maker if len(set(scales)) > 1 and len(by_maker) == len(images) else scales
    pairs = [(image.inverted, *scale) for image, scale in zip(images, scales, strict=True)]
    tops = [slope * ends + 2 * shift for ends, slope, shift in pairs if ends is not None]
    return [
        (slope, shift if ends is None else max(tops) - shift - slope * ends) for ends, slope, shift in pairs
    ]


def one_scale(stack: Stack) -> bool:
    """Return whether intensities are certain to be comparable across a stack's frames."""
    scales = {(image.slope, image.intercept) for image in stack.images()}
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
