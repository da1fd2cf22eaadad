"""Stored values of frames, decoded, with nothing but the bits of the image."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydicom.dataset import Dataset

from cardiolens.intake.find import Place
from cardiolens.intake.header import read_dataset
from cardiolens.intake.image import Image, RejectedError
from cardiolens.intake.nifti_file import frames_at
from cardiolens.intake.reasons import Reason

Frame = NDArray[Any]


class PixelReader:
    """Reads frames; those of the file that was read last are kept, as a multi-frame file has hundreds."""

    def __init__(self) -> None:
        self._place: Place | None = None
        self._frames: Frame = np.empty((0, 0, 0))

    def frame(self, image: Image) -> Frame:
        """Stored values (row, column) of a frame; RejectedError where they cannot be read."""
        if image.place != self._place:
            reading = image.reading
            self._frames = (
                _decoded(image.place)
                if reading is None
                else frames_at(image.place, one_phase=reading.one_phase)
            )
            self._place = image.place
        if image.frame >= len(self._frames):
            raise RejectedError(Reason.BROKEN_PIXELS, "fewer frames than the header says")
        frame: Frame = self._frames[image.frame]
        if frame.shape != (image.rows, image.columns):
            raise RejectedError(Reason.BROKEN_PIXELS, "another matrix than the header says")
        return frame


def _decoded(place: Place) -> Frame:
    dataset = read_dataset(place, pixels=True)
    if "PixelData" not in dataset:
        raise RejectedError(Reason.NO_PIXELS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _check_length(dataset)
            values = np.asarray(dataset.pixel_array)
    except RejectedError:
        raise
    except (RuntimeError, NotImplementedError, ImportError) as error:
        compressed = (
            dataset.file_meta.TransferSyntaxUID.is_compressed if "file_meta" in dir(dataset) else False
        )
        missing = compressed and (
            "missing" in str(error) or ("plugin" in str(error) and "install" in str(error))
        )
        raise RejectedError(
            Reason.NO_DECODER if missing else Reason.BROKEN_PIXELS, type(error).__name__
        ) from None
    except Exception as error:  # noqa: BLE001 - decoders raise kinds of their own for damaged streams
        raise RejectedError(Reason.BROKEN_PIXELS, type(error).__name__) from None
    frames = values[None] if values.ndim == 2 else values
    frames = _own_bits(frames, dataset)
    if str(dataset.get("PhotometricInterpretation", "")) == "MONOCHROME1":
        frames = int(frames.max()) + int(frames.min()) - frames.astype(np.int32)
    return frames


def _check_length(dataset: Dataset) -> None:
    """Refuse native pixels that are fewer than the header says; pydicom would repeat or pad some."""
    if dataset.file_meta.TransferSyntaxUID.is_compressed:
        return
    frames = int(dataset.get("NumberOfFrames") or 1)
    expected = frames * int(dataset.Rows) * int(dataset.Columns) * int(dataset.BitsAllocated) // 8
    if len(dataset.PixelData) < expected:
        raise RejectedError(Reason.BROKEN_PIXELS, "fewer bytes than the header says")


def _own_bits(frames: Frame, dataset: Dataset) -> Frame:
    """The stored bits alone: retired overlays, which may hold text, lie in the bits above them."""
    stored, allocated = int(dataset.BitsStored), int(dataset.BitsAllocated)
    if stored == allocated or frames.dtype.kind not in "iu":
        return frames
    unused = frames.dtype.itemsize * 8 - stored
    if unused <= 0:
        return frames
    shifted: Frame = np.right_shift(np.left_shift(frames, unused), unused)
    return shifted


def stacked(
    lines: Sequence[Sequence[Frame]], slope: Sequence[float], intercept: Sequence[float]
) -> tuple[Frame, float, float]:
    """Frames as (slice, phase, row, column) with one slope and intercept for all of them.

    Integers stay as stored where all frames share both; else intensities are computed, as Philips scales each
    frame for itself.
    """
    if len(set(slope)) == 1 and len(set(intercept)) == 1:
        return _common(np.array(lines)), slope[0], intercept[0]
    shape = len(lines), len(lines[0])
    scaled = [
        frame * k + b
        for frame, k, b in zip((f for line in lines for f in line), slope, intercept, strict=True)
    ]
    return np.array(scaled, np.float32).reshape(*shape, *scaled[0].shape), 1.0, 0.0


def _common(values: Frame) -> Frame:
    """The narrowest type that NIfTI readers know and that holds the values."""
    if values.dtype.kind == "f" or values.dtype.itemsize <= 2:
        return values
    low, high = int(values.min()), int(values.max())
    for kind in (np.int16, np.uint16, np.int32):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return values.astype(kind)
    return values.astype(np.float64)
