"""The first pass of simulated hearts: the left ventricle's peak within two beats, or not found."""

import numpy as np
import pytest

from cardiolens.study.times import first_pass, heart_curve

SIDE, LIVER = 40, 32


def passing(beats, arrival, width):
    late = np.maximum(beats - arrival, 0)
    recirculation = 0.25 * (1 - np.exp(-late / 8))
    return 0.1 + 0.85 * (late / (3 * width)) ** 3 * np.exp(3 - late / width) + recirculation


def staying(beats, arrival, slowness, height):
    return 0.1 + height * (1 - np.exp(-np.maximum(beats - arrival, 0) / slowness))


def hearts(seed: int, trait: str) -> tuple[np.ndarray, int | None]:
    """Frames (slice, beat, row, column) of two slices, and the beat of the left ventricle's peak."""
    draw = np.random.default_rng(seed)
    beats = np.arange(draw.integers(44, 80)).astype(float)
    right = draw.uniform(3, 9)
    left = right + draw.uniform(4, 8)
    widths = draw.uniform(1, 1.8), draw.uniform(1.5, 2.8)
    blood = [passing(beats, right, widths[0]), passing(beats, left, widths[1])]
    truth: int | None = int(blood[1].argmax())
    if trait == "no wash-out":
        blood, truth = [staying(beats, right, 9, 0.8), staying(beats, left, 12, 0.75)], None
    if trait == "after stress":
        blood = [curve + 0.25 * np.exp(-beats / 60) for curve in blood]
    if trait == "no contrast":
        blood, truth = [np.full(beats.size, 0.2)] * 2, None
    muscle = staying(beats, left + 2, 4, draw.uniform(0.25, 0.5))
    breath = draw.uniform(2, 5) if trait == "breathing" else draw.uniform(0, 0.7)
    away = breath * np.sin(2 * np.pi * beats / draw.uniform(5, 14))
    rows, columns = np.indices((SIDE, SIDE))
    radius = draw.uniform(6, 9) if trait == "large right ventricle" else draw.uniform(4, 6)
    frames = np.empty((2, beats.size, SIDE, SIDE))
    for k in range(beats.size):
        middle = np.hypot(rows - 18 - away[k], columns - 25)
        beside = np.hypot(rows - 18 - away[k], columns - 25 + 7 + radius)
        frame = np.where(rows > LIVER, staying(beats, left + 8, 15, 0.3)[k], 0.1)
        frame = np.where(beside < radius, blood[0][k], frame)
        frame = np.where(middle < 8, muscle[k], frame)
        frame = np.where(middle < 5, blood[1][k], frame)
        drift = 1 + 0.006 * k * (trait == "drift")
        frames[:, k] = 800 * (frame * drift + draw.normal(0, 0.015, (2, SIDE, SIDE)))
    return frames, truth


TRAITS = (
    *("plain", "drift", "breathing", "no wash-out", "after stress"),
    *("large right ventricle", "no contrast"),
)


@pytest.mark.parametrize("trait", TRAITS)
@pytest.mark.parametrize("seed", range(3))
def test_the_peak_is_that_of_the_left_ventricle_or_not_found(trait, seed):
    frames, truth = hearts(1000 * TRAITS.index(trait) + seed, trait)
    curve = heart_curve(frames)
    measured = None if curve is None else first_pass(curve)
    if truth is None:
        assert measured is None or not measured.bolus_found
    else:
        assert measured is not None
        assert measured.bolus_found
        assert abs(measured.t_peak - truth) <= 2


def test_a_first_peak_before_a_slow_rise_without_wash_out_is_not_the_end_of_the_rise():
    """As one real series shows: onset at 6, a peak at 13 that hardly falls, then a slow rise to the end."""
    beats = np.arange(79.0)
    curve = 100 + 300 * np.clip((beats - 6) / 7, 0, 1) - 30 * np.clip((beats - 13) / 3, 0, 1)
    measured = first_pass(list(curve + 1.5 * np.maximum(beats - 20, 0)))
    assert not measured.bolus_found or abs(measured.t_peak - 13) <= 2
