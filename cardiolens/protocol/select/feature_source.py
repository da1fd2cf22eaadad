"""Sights: sources of features for data-driven selectors, the frames' pixels or an encoder."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cardiolens.base.digest import digest_of_files
from cardiolens.base.errors import InputError
from cardiolens.config.selector import SelectorSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.protocol.select import features
from cardiolens.protocol.select.encoder import open_encoder
from cardiolens.storage.model_files import check_files


@dataclass(frozen=True, slots=True)
class Sight:
    """One source of features; `key` identifies its features in the store and changes with their content."""

    key: str
    encoder: Path | None = None

    def of_volume(self, frames_FHW: NDArray[np.uint8], n_phases: int, cyclic: bool) -> NDArray[np.float32]:
        """Return one vector per frame, in canonical order; frames are windowed grey values as displayed."""
        if self.encoder is None:
            return features.volume_features(frames_FHW, n_phases, cyclic)
        return open_encoder(self.encoder).frames(frames_FHW)

    def of_question(self, question: str) -> NDArray[np.float32]:
        """Return the vector of a question in the space of the frames; only CLIP-type encoders have one."""
        assert self.encoder is not None, "kind relevance requires an encoder"
        return _of_question(self.encoder, question)


PIXELS = Sight(f"v{features.VERSION}")


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
