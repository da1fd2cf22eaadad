"""Noise and distractors of a study by difficulty; labels never depend on them (protocol 10.2)."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

Difficulty = Literal["easy", "standard", "hard"]


@dataclass(frozen=True)
class Appearance:
    """Noise and distractors of one study; the defaults add no distractor."""

    sigma: float  # standard deviation of the noise, in signal units
    fat_mm: float = 0.0
    slow_flow: bool = False
    rim_mm: float = 0.0
    nulled: bool = True
    basal_partial_volume: bool = False
    slice_shift_mm: float = 0.0


SIGMA: Mapping[Difficulty, float] = {"easy": 0.01, "standard": 0.03, "hard": 0.06}
SHARE: Mapping[Difficulty, float] = {"easy": 0, "standard": 1, "hard": 99}  # distractors per study, at most


def appearance(difficulty: Difficulty, seed: str, spacing_mm: float) -> Appearance:
    """Return the appearance of a study: no distractor, one chosen by the seed, or all of them."""
    plain = Appearance(SIGMA[difficulty])
    everything: dict[str, object] = {
        "fat_mm": 3.0,
        "slow_flow": True,
        "rim_mm": spacing_mm,
        "nulled": False,
        "basal_partial_volume": True,
        "slice_shift_mm": 3.0,
    }
    ranked = sorted(everything, key=lambda name: hashlib.sha256(f"{seed}|{name}".encode()).hexdigest())
    chosen = ranked[: int(SHARE[difficulty])]
    return replace(plain, **{name: everything[name] for name in chosen})  # type: ignore[arg-type]
