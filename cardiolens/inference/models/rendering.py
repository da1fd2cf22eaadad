"""Render a stored frame as the picture that a model sees."""

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from PIL import Image

from cardiolens.base.digest import DIGEST_BYTES, digest_of

_METHOD = "bicubic-1"  # increment when equal options give other pixels


@dataclass(frozen=True, slots=True)
class Rendering:
    """Options of resizing; together with a frame's native pixels they determine the picture."""

    long_side: int  # pixels; the aspect ratio is kept, without padding

    def size(self, height: int, width: int) -> tuple[int, int]:
        """Return the rendered (height, width) of a native height and width."""
        scale = self.long_side / max(height, width)
        return max(1, round(height * scale)), max(1, round(width * scale))

    def apply(self, pixels: np.ndarray) -> np.ndarray:
        """Resize a uint8 frame: (height, width) if grey, (height, width, 3) if RGB.

        Grey frames stay grey until the engine converts them to RGB: three equal channels would fill the
        object store.
        """
        height, width = self.size(*pixels.shape[:2])
        if (height, width) == pixels.shape[:2]:
            return pixels
        resized = Image.fromarray(pixels).resize((width, height), Image.Resampling.BICUBIC)
        return np.asarray(resized)

    @property
    def digest(self) -> str:
        """Digest of the options and the method."""
        return digest_of([_METHOD, self.long_side, Image.Resampling.BICUBIC.name])


def frame_key(pixel_digest: str, rendering_digest: str) -> str:
    """Return the digest of native pixels and rendering; identifies a picture, also to the engine."""
    both = f"{pixel_digest} {rendering_digest}".encode()
    return blake2b(both, digest_size=DIGEST_BYTES).hexdigest()
