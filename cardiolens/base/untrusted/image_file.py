"""Pictures of strangers: opened by content, never beyond a bound of pixels."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO

from PIL import Image, UnidentifiedImageError

from cardiolens.base.errors import InputError

FORMATS = ("JPEG", "PNG", "TIFF", "BMP", "WEBP", "GIF")


@contextmanager
def opened(stored: bytes) -> Iterator[Image.Image]:
    """A picture, not yet decoded; ValueError within the block where it is none, immense or damaged."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(BytesIO(stored), formats=FORMATS) as image:
                yield image
    except InputError:
        raise
    except UnidentifiedImageError:
        raise ValueError(f"is no image; expected one of {', '.join(FORMATS)}; convert it") from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        most = (Image.MAX_IMAGE_PIXELS or 0) // 1_000_000
        raise ValueError(f"is larger than {most} megapixels; make it smaller") from None
    except (OSError, SyntaxError, ValueError, EOFError, OverflowError) as error:
        raise ValueError(f"cannot be decoded ({error}); bring a whole copy of it") from None
