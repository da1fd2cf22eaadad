"""Pretrained image encoder from a local folder: vectors of frames and, for CLIP types, of questions.

`save_pretrained` writes such a folder: config, weights, image processor and, for questions, text tower and
tokenizer. Vectors have unit length, so a dot product is a cosine. They are computed on CPU in float32: last
digits, and so ties, may differ on other machines.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardiolens.base.errors import InputError

_AT_ONCE = 32  # frames per batch
_REMEDY = "give the folder of a saved image encoder, e.g. of CLIP or ResNet type"


@lru_cache(maxsize=4)
def open_encoder(folder: Path) -> "Encoder":
    """Load the encoder of a folder once per process."""
    return Encoder(folder)


class Encoder:
    """An image encoder and, if the folder has them, a text tower and tokenizer."""

    def __init__(self, folder: Path) -> None:
        try:
            from huggingface_hub.errors import StrictDataclassError
            from transformers import AutoImageProcessor, AutoModel
            from transformers.utils.logging import disable_progress_bar

            disable_progress_bar()
            self._model: Any = AutoModel.from_pretrained(folder, local_files_only=True).eval()
            self._images: Any = AutoImageProcessor.from_pretrained(folder, local_files_only=True)
        except ImportError as error:
            raise InputError(
                f"encoder {folder}: {error}; install the extra: pip install 'cardiolens[encoder]'"
            ) from None
        except (OSError, ValueError, RuntimeError, TypeError, StrictDataclassError, UnpicklingError) as error:
            raise InputError(f"encoder {folder}: cannot be loaded ({_first(error)}); {_REMEDY}") from None
        self._folder = folder

    def frames(self, frames_FHW: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Return unit vectors of frames: (frames, features)."""
        encode = getattr(self._model, "get_image_features", self._model)
        vectors = []
        for start in range(0, len(frames_FHW), _AT_ONCE):
            pictures = [np.repeat(frame[..., None], 3, axis=2) for frame in frames_FHW[start:][:_AT_ONCE]]
            with self._used_as("an image encoder"):
                vectors.append(self._vectors(encode, self._images(images=pictures, return_tensors="pt")))
        return np.concatenate(vectors)

    def text(self, words: str) -> NDArray[np.float32]:
        """Return the unit vector of a text, truncated to the model's limit; InputError unless CLIP type."""
        if not hasattr(self._model, "get_text_features"):
            raise InputError(
                f"encoder {self._folder}: reads no text, and kind relevance compares frames with "
                "questions; give the folder of a CLIP type model, or choose kind kcenter"
            )
        with self._used_as("a reader of text"):
            tokens = self._tokenizer()([words], truncation=True, return_tensors="pt")
            tokens.pop("token_type_ids", None)
            vector: NDArray[np.float32] = self._vectors(self._model.get_text_features, tokens)[0]
        return vector

    @contextmanager
    def _used_as(self, role: str) -> Iterator[None]:
        """Convert errors of an unsuitable model or processor to InputError."""
        try:
            yield
        except InputError:
            raise
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            reason = _first(error)
            raise InputError(
                f"encoder {self._folder}: cannot be used as {role} ({reason}); {_REMEDY}"
            ) from error

    def _tokenizer(self) -> Any:
        from transformers import AutoTokenizer

        if not any(self._folder.glob("tokenizer*.json")):  # transformers would create an empty one
            raise InputError(f"encoder {self._folder}: has no tokenizer; save it in the same folder")
        return AutoTokenizer.from_pretrained(self._folder, local_files_only=True)

    def _vectors(self, encode: Any, inputs: Any) -> NDArray[np.float32]:
        import torch

        with torch.inference_mode():
            outputs = encode(**inputs)
        pooled = outputs if isinstance(outputs, torch.Tensor) else getattr(outputs, "pooler_output", None)
        if pooled is None:
            raise InputError(f"encoder {self._folder}: gives no pooled vector of a frame; {_REMEDY}")
        rows = pooled.reshape(len(pooled), -1).to(torch.float32).numpy()
        unit: NDArray[np.float32] = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        return unit


def _first(error: Exception) -> str:
    """Return the first line of an error message; libraries write long ones."""
    return str(error).strip().partition("\n")[0]
