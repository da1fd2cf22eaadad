"""Rendering of a stored frame as the picture that a model sees."""

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from PIL import Image

from cardiolens.base.digest import DIGEST_BYTES, digest_of

_METHOD = "bicubic-1"  # increment when the same options give other pixels


@dataclass(frozen=True, slots=True)
class Rendering:
    """Options of resizing; with the native pixels of a frame they decide the picture."""

    long_side: int  # pixels; aspect kept, no padding

    def size(self, height: int, width: int) -> tuple[int, int]:
        """Rendered (height, width) for a native height and width."""
        scale = self.long_side / max(height, width)
        return max(1, round(height * scale)), max(1, round(width * scale))

    def apply(self, pixels: np.ndarray) -> np.ndarray:
        """Resize a frame, uint8: (height, width) if it is grey, (height, width, 3) if it is RGB.

        The engine converts a grey one to RGB as its last step: three equal channels would fill the object
        store.
        """
        height, width = self.size(*pixels.shape[:2])
        if (height, width) == pixels.shape[:2]:
            return pixels
        resized = Image.fromarray(pixels).resize((width, height), Image.Resampling.BICUBIC)
        return np.asarray(resized)

    @property
    def digest(self) -> str:
        """Digest of the options and of the method."""
        return digest_of([_METHOD, self.long_side, Image.Resampling.BICUBIC.name])


def frame_key(pixel_digest: str, rendering_digest: str) -> str:
    """Digest of native pixels and rendering; it identifies a picture, also to the engine."""
    both = f"{pixel_digest} {rendering_digest}".encode()
    return blake2b(both, digest_size=DIGEST_BYTES).hexdigest()
