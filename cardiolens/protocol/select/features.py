"""Features of frames for selectors: of pixels, or of an image encoder."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardiolens.base.digest import digest_of_files
from cardiolens.base.errors import InputError
from cardiolens.config.sweep import SweepSpec
from cardiolens.config.sweep_factors import SelectorSpec
from cardiolens.storage.model_files import check_files

Floats = NDArray[np.float64]

SIDE = 32
CELLS = 4
BINS = 8
N_FEATURES = SIDE * SIDE + CELLS * CELLS * BINS + 2 * CELLS * CELLS
VERSION = "1"
_CENTRE = 0.7
_STEPS = 256  # small pictures are rounded to 1/256 grey level, so that sums are equal on all machines


def volume_features(frames_FHW: NDArray[np.uint8], n_phases: int, cyclic: bool) -> NDArray[np.float32]:
    """Return one vector per frame, in canonical order; frames are windowed grey values as displayed."""
    small = small_pictures(frames_FHW)
    n_frames = len(small)
    blocks = (
        small.reshape(n_frames, -1),
        _edge_directions(small),
        _changes(small.reshape(-1, n_phases, SIDE, SIDE), cyclic).reshape(n_frames, -1),
    )
    return np.concatenate([_unit(block) for block in blocks], axis=1).astype(np.float32)


def small_pictures(frames_FHW: NDArray[np.uint8]) -> Floats:
    """Return the central square of each frame as 32 x 32 area means."""
    height, width = frames_FHW.shape[1:]
    side = _CENTRE * min(height, width)
    down, across = _area_weights(height, side), _area_weights(width, side)
    means = np.empty((len(frames_FHW), SIDE, SIDE))
    for idx, frame in enumerate(frames_FHW):  # one frame at a time: float64 is eight times the size
        means[idx] = down @ frame.astype(np.float64) @ across.T
    return np.rint(means * _STEPS) / _STEPS


@lru_cache(maxsize=64)
def _area_weights(length: int, side: float) -> Floats:
    """Return pixel weights for the cells of a centred span of `side` pixels; one row per cell, sum 1."""
    edges = (length - side) / 2 + side * np.arange(SIDE + 1) / SIDE
    pixels = np.arange(length)
    upper = np.minimum(edges[1:, None], pixels + 1)
    lower = np.maximum(edges[:-1, None], pixels)
    weights: Floats = np.clip(upper - lower, 0, None) * SIDE / side
    return weights


def _edge_directions(small: Floats) -> Floats:
    """Return edge strength by cell and direction, (frames, cells * cells * bins)."""
    along_y, along_x = np.gradient(small, axis=(1, 2))
    strength = np.hypot(along_y, along_x)
    turns = np.arctan2(along_y, along_x) / (2 * np.pi)
    bins = np.floor(turns * BINS + 0.5).astype(np.int64) % BINS  # bins are centred on their directions
    by_bin = np.where(bins[..., None] == np.arange(BINS), strength[..., None], 0.0)
    return _cell_means(by_bin).reshape(len(small), -1)


def _changes(small: Floats, cyclic: bool) -> Floats:
    """Return the mean absolute difference by cell to previous and next phase of (slices, phases, y, x)."""
    previous = np.roll(small, 1, axis=1)
    if not cyclic:
        previous[:, 0] = small[:, 0]
    from_previous = np.abs(small - previous)
    to_next = np.roll(from_previous, -1, axis=1)
    n_slices, n_phases = small.shape[:2]
    both = np.stack([from_previous, to_next], axis=-1).reshape(-1, SIDE, SIDE, 2)
    return np.moveaxis(_cell_means(both), -1, 1).reshape(n_slices, n_phases, -1)


def _cell_means(values: Floats) -> Floats:
    """Return means over the cells of a 4 x 4 grid, (frames, 4, 4, bins)."""
    size = SIDE // CELLS
    shaped = values.reshape(len(values), CELLS, size, CELLS, size, values.shape[-1])
    means: Floats = shaped.mean(axis=(2, 4))
    return means


def _unit(block: Floats) -> Floats:
    """Scale rows to unit length; a row of zeros stays zero."""
    length = np.linalg.norm(block, axis=1, keepdims=True)
    unit: Floats = np.divide(block, length, out=np.zeros_like(block), where=length > 0)
    return unit


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


@dataclass(frozen=True, slots=True)
class Sight:
    """One source of features; `key` identifies its features in the store and changes with their content."""

    key: str
    encoder: Path | None = None

    def of_volume(self, frames_FHW: NDArray[np.uint8], n_phases: int, cyclic: bool) -> NDArray[np.float32]:
        """Return one vector per frame, in canonical order; frames are windowed grey values as displayed."""
        if self.encoder is None:
            return volume_features(frames_FHW, n_phases, cyclic)
        return open_encoder(self.encoder).frames(frames_FHW)

    def of_question(self, question: str) -> NDArray[np.float32]:
        """Return the vector of a question in the space of the frames; only CLIP-type encoders have one."""
        assert self.encoder is not None, "kind relevance requires an encoder"
        return _of_question(self.encoder, question)


PIXELS = Sight(f"v{VERSION}")


def sight_of(selector: SelectorSpec) -> Sight:
    """Return the sight of a selector; InputError if the encoder folder has no model."""
    return PIXELS if selector.encoder is None else _encoder_sight(selector.encoder)


def sights_of(spec: SweepSpec) -> tuple[Sight, ...]:
    """Return the distinct sights of the selectors that look at frames."""
    return tuple({sight_of(selector): None for selector in spec.selector if selector.looks_at_pixels})


def check_encoders(spec: SweepSpec) -> None:
    """Raise InputError unless every encoder of a sweep loads and accepts the inputs its selector needs."""
    for selector in spec.selector:
        if selector.encoder is not None:
            sight = sight_of(selector)
            sight.of_volume(np.zeros((1, 32, 32), np.uint8), n_phases=1, cyclic=False)
            if selector.kind == "relevance":
                sight.of_question("Is there late gadolinium enhancement?")


@lru_cache(maxsize=4)
def _encoder_sight(folder: Path) -> Sight:
    files = [path for path in folder.iterdir() if path.is_file()] if folder.is_dir() else []
    if not any(path.name == "config.json" for path in files):
        raise InputError(
            f"encoder {folder}: no folder with a config.json; give the local folder of a saved image encoder"
        )
    check_files(folder)
    return Sight(f"encoder-{digest_of_files(files)[:16]}", folder.resolve())


@lru_cache(maxsize=4096)
def _of_question(folder: Path, question: str) -> NDArray[np.float32]:
    return open_encoder(folder).text(question)
