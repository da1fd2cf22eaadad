"""Rendering of a stored frame into the picture that a model sees."""

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from PIL import Image

from cardiolens.digest import DIGEST_BYTES, digest_of

_METHOD = "bicubic-1"  # raise when the same options give other pixels


@dataclass(frozen=True, slots=True)
class Rendering:
    """Options that, with a frame's native pixels, decide what is shown."""

    long_side: int  # pixels; aspect kept, no padding

    def size(self, height: int, width: int) -> tuple[int, int]:
        """Height and width shown for a native height and width."""
        scale = self.long_side / max(height, width)
        return max(1, round(height * scale)), max(1, round(width * scale))

    def apply(self, pixels_HW: np.ndarray) -> np.ndarray:
        """The frame resized, uint8, one channel.

        RGB is the engine's last step: three equal channels would only fill the object store.
        """
        height, width = self.size(*pixels_HW.shape)
        if (height, width) == pixels_HW.shape:
            return pixels_HW
        resized = Image.fromarray(pixels_HW).resize((width, height), Image.Resampling.BICUBIC)
        return np.asarray(resized)

    @property
    def digest(self) -> str:
        return digest_of([_METHOD, self.long_side, Image.Resampling.BICUBIC.name])


def frame_key(pixel_digest: str, rendering_digest: str) -> str:
    """Identity of a picture shown: native pixels and their rendering; also the image id for the engine."""
    both = f"{pixel_digest} {rendering_digest}".encode()
    return blake2b(both, digest_size=DIGEST_BYTES).hexdigest()
