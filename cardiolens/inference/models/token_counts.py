"""Visual tokens of frames, the size in which a model is shown them, and what makes a model unusable."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from PIL import Image

from cardiolens.base.digest import DIGEST_BYTES, digest_of
from cardiolens.base.errors import InputError, RunError
from cardiolens.storage.schemas import FRAME


class ModelError(InputError):
    """One model cannot be asked; the other models of the sweep still can."""


@contextmanager
def fault_of(model: str) -> Iterator[None]:
    """Turn every error of a block into ModelError: templates and processors are foreign code.

    RunError passes through, because it means that no model can continue.
    """
    try:
        yield
    except (ModelError, RunError):
        raise
    except InputError as error:
        raise ModelError(str(error)) from error
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise ModelError(
            f"model {model}: its template or processor failed ({reason}); take its files from where it is "
            "published, or run the other models with keep_going=true"
        ) from error


_CHARACTERS = 3  # per token; on English, tokenizers reach more, so the estimate errs upwards


class EstimatedTokens:
    """Estimate from a declared number of tokens per frame, and one token per three characters of text.

    Counts what `Chat` counts.
    """

    def __init__(self, image_tokens: int) -> None:
        self._image_tokens = image_tokens

    def image_tokens(self, size: tuple[int, int]) -> int:
        return self._image_tokens

    def count(self, system: str, text: str, sizes: tuple[tuple[int, int], ...]) -> int:
        pieces = system, *text.rsplit(FRAME, 1)
        return len(sizes) * self._image_tokens + sum(math.ceil(len(each) / _CHARACTERS) for each in pieces)


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
