"""Sights: the features by which a data-driven selector sees frames, from their pixels or an encoder."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cardiolens.base.digest import digest_of_files
from cardiolens.base.errors import InputError
from cardiolens.config.sweep import SelectorSpec, SweepSpec
from cardiolens.protocol.select import features
from cardiolens.protocol.select.encoder import open_encoder
from cardiolens.storage.model_files import check_files


@dataclass(frozen=True, slots=True)
class Sight:
    """One way to see frames; `key` names its features in the store and changes with what it computes."""

    key: str
    encoder: Path | None = None

    def of_volume(self, frames_FHW: NDArray[np.uint8], n_phases: int, cyclic: bool) -> NDArray[np.float32]:
        """One vector per frame, in canonical order; frames are windowed grey values as displayed."""
        if self.encoder is None:
            return features.volume_features(frames_FHW, n_phases, cyclic)
        return open_encoder(self.encoder).frames(frames_FHW)

    def of_question(self, question: str) -> NDArray[np.float32]:
        """The vector of a question among those of frames; only an encoder of CLIP type has one."""
        assert self.encoder is not None, "kind relevance has an encoder, or it is refused"
        return _of_question(self.encoder, question)


PIXELS = Sight(f"v{features.VERSION}")


def sight_of(selector: SelectorSpec) -> Sight:
    """The sight of a selector; InputError where its encoder's folder holds no model."""
    return PIXELS if selector.encoder is None else _encoder_sight(selector.encoder)


def sights_of(spec: SweepSpec) -> tuple[Sight, ...]:
    """The distinct sights of a sweep's selectors; none where no selector looks at frames."""
    return tuple({sight_of(selector): None for selector in spec.selector if selector.looks_at_pixels})


def check_encoders(spec: SweepSpec) -> None:
    """Raise InputError unless every encoder of a sweep loads and reads what its selector needs."""
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
