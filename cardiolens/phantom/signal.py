"""Signal of each tissue: contrast, first-pass kinetics, bias and noise (protocol 10.2)."""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cardiolens.phantom import codes
from cardiolens.phantom.draws import Draws
from cardiolens.phantom.geometry import Floats
from cardiolens.phantom.parameters import DefectShape, data_file

Table = NDArray[np.float64]  # signal by tissue code, shape (256,)

FULL_SCALE = 3000  # stored value of signal 1; the range up to 4095 leaves room for bias and noise
_BIAS = 0.15
_RV_ARRIVAL, _LV_ARRIVAL = 6.0, 11.0
MUSCLE_ARRIVAL = 13.0  # beat before which a perfusion defect is invisible
_RIGHT_BLOOD = (codes.RV_BLOOD, codes.RA_BLOOD, codes.PULMONARY_ARTERY)
_LEFT_BLOOD = (codes.LV_BLOOD, codes.LA_BLOOD, codes.AORTA, codes.DESCENDING_AORTA)
_MUSCLE = (*range(1, 18), codes.PAPILLARY, codes.RV_WALL)
_CODES: Mapping[str, tuple[int, ...]] = {  # of each name in signals.yaml, and of what changes with time
    "blood": (*_RIGHT_BLOOD, *_LEFT_BLOOD),
    "right_blood": _RIGHT_BLOOD,
    "left_blood": (*_LEFT_BLOOD, codes.SLOW_FLOW),
    **{"background": (codes.BACKGROUND,), "myocardium": _MUSCLE, "wall": (codes.BASE_WALL,)},
    **{"leaflet": (codes.LEAFLET,), "jet": (codes.JET,), "fluid": (codes.FLUID, codes.PLEURAL_FLUID)},
    **{"fat": (codes.FAT,), "slow_flow": (codes.SLOW_FLOW,), "lung": (codes.LUNG,), "liver": (codes.LIVER,)},
    **{"chest_muscle": (codes.CHEST_MUSCLE,), "chest_fat": (codes.CHEST_FAT,), "air": (codes.AIR,)},
    "lesion": tuple(code + codes.LESION for code in (*_MUSCLE, codes.FLUID)),
    "obstruction": tuple(code + codes.OBSTRUCTION for code in (*range(1, 18), codes.PAPILLARY)),
    "dark_rim": tuple(segment + codes.DARK_RIM for segment in range(1, 18)),
}


def _table(signals: Mapping[str, float]) -> Table:
    """Return the signal by tissue code; a code of several names has that of the last."""
    table = np.full(256, signals["background"])
    for name, signal in signals.items():
        table[list(_CODES[name])] = signal
    return table


def static_table(sequence: str, *, nulled: bool = True) -> Table:
    """Return the signal by tissue code without kinetics; `nulled` puts LGE myocardium at its null point."""
    of: dict[str, float] = dict(data_file("signals")[sequence])
    if not nulled:
        of["myocardium"] = data_file("signals")["imperfect_nulling"]
    unnamed = dict.fromkeys(("leaflet", "lesion", "obstruction", "dark_rim"), of["myocardium"])
    return _table({**unnamed, "jet": of["blood"], **of})


def perfusion_tables(beats: int, defect: DefectShape | None, *, dark_rim: bool) -> list[Table]:
    """Return the signal by tissue code at each beat of the first pass; lesion codes are perfusion defects."""
    right = [blood_signal(beat, _RV_ARRIVAL, 1.6) for beat in range(beats)]
    left = [blood_signal(beat, _LV_ARRIVAL, 2.0) for beat in range(beats)]
    peak = left.index(max(left))
    tables = []
    for beat in range(beats):
        muscle = muscle_signal(beat)
        signals = {"right_blood": right[beat], "left_blood": left[beat], "myocardium": muscle, "wall": muscle}
        signals["dark_rim"] = muscle * (0.5 if dark_rim and abs(beat - peak) <= 2 else 1.0)
        if defect:
            signals["lesion"] = defect_signal(defect, beat)
        tables.append(_table({**data_file("signals")["perfusion"], **signals}))
    return tables


def gamma_variate(t: float, arrival: float, alpha: float, beta: float) -> float:
    """Return the first-pass bolus at time t; its peak is 1, at arrival + alpha beta."""
    if t <= arrival:
        return 0.0
    late = t - arrival
    return round(math.pow(late / (alpha * beta), alpha) * math.exp(alpha - late / beta), 9)


def blood_signal(t: float, arrival: float, beta: float) -> float:
    """Return the blood signal at beat t: the bolus, then recirculation."""
    again = 0.25 * (1 - math.exp(-(t - arrival) / 8)) if t > arrival else 0.0
    return round(0.10 + 0.80 * gamma_variate(t, arrival, 3, beta) + again, 9)


def muscle_signal(t: float, amplitude: float = 1.0, delay: float = 0.0) -> float:
    """Return the myocardial signal at beat t: uptake and slow wash-out."""
    late = t - MUSCLE_ARRIVAL - delay
    if late <= 0:
        return 0.12
    return round(0.12 + amplitude * 0.40 * (1 - math.exp(-late / 4)) * (0.6 + 0.4 * math.exp(-late / 25)), 9)


def defect_signal(defect: DefectShape, t: float) -> float:
    """Return the signal of a perfusion defect at beat t: lower and later uptake."""
    return muscle_signal(t, defect.uptake, defect.delay)


def uptake_share(defect: DefectShape, t: float) -> float:
    """Return the uptake of a defect by beat t as a share of that of normal muscle."""
    before = muscle_signal(0)
    return round((defect_signal(defect, t) - before) / (muscle_signal(t) - before), 6)


def first_pass(beats: int) -> tuple[int, int]:
    """Return the beats at which contrast reaches the left ventricle and at which it peaks there."""
    left = [blood_signal(beat, _LV_ARRIVAL, 2.0) for beat in range(beats)]
    return int(_LV_ARRIVAL) + 1, left.index(max(left))


class Scanner:
    """Bias and noise of one volume, from a stream of its own that other volumes do not affect."""

    def __init__(self, seed: str, volume_id: str, pixels: int, sigma: float) -> None:
        self._draw = Draws(seed, volume_id)
        self._sigma = sigma
        self._bias = 1 + _BIAS * self._smooth(pixels)

    def image(self, signal_HW: Floats) -> NDArray[np.int16]:
        """Convert a signal frame to stored values 0 .. 4095, with bias and Rician noise."""
        shape = signal_HW.shape
        real = signal_HW * self._bias + self._sigma * self._normal(shape)
        imaginary = self._sigma * self._normal(shape)
        magnitude = np.sqrt(real * real + imaginary * imaginary)
        return np.asarray(np.clip(np.rint(magnitude * FULL_SCALE), 0, 4095), dtype=np.int16)

    def _normal(self, shape: tuple[int, ...]) -> Floats:
        """Return nearly normal numbers, each the sum of four 16-bit integers, which needs no logarithm."""
        raw = self._draw.raw(int(np.prod(shape))).view(np.uint16).reshape(-1, 4)
        total = raw[:, 0].astype(np.float64) + raw[:, 1] + raw[:, 2] + raw[:, 3]
        return np.asarray((total - 131070.0) * (1 / 37837.227)).reshape(shape)

    def _smooth(self, pixels: int) -> Floats:
        """Return a random quadratic surface over the image, scaled to -1 .. 1."""
        across = (np.arange(pixels) - (pixels - 1) / 2) / (pixels / 2)
        y, x = across[:, None], across[None, :]
        c = self._normal((5,))
        surface = c[0] * x + c[1] * y + c[2] * (x * y) + c[3] * (x * x) + c[4] * (y * y)
        surface = surface - (surface.max() + surface.min()) / 2
        return np.asarray(surface / max(float(surface.max()), 1e-9))


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
