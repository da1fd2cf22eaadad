"""Decode image files of any size and mode to frame pixels: one grey channel, or RGB."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.image_file import opened

_GREY = ("1", "L")
_DEEP = ("I", "F", "I;16", "I;16L", "I;16B", "I;16N")
_CLEAR = ("LA", "PA", "RGBA", "La", "RGBa")
_WHITE = 255


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
