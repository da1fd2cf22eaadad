"""The first pass of simulated hearts: how far the peak is from the left ventricle's, or that none is found.

    python -m bench.first_pass [hearts a trait]        default: 30, of seven traits

A heart has two ventricles, muscle and liver, of random arrivals, widths and sizes, with noise. It drifts,
breathes, keeps the contrast of a stress before it, or has no wash-out, or no contrast at all: then there is
no peak to find.
Prints the table of docs/guides/import.md.
"""

import sys

import numpy as np
from numpy.typing import NDArray

from cardiolens.study.times import first_pass, heart_curve

Floats = NDArray[np.float64]

NEAR = 2  # heartbeats from the truth
SIDE, LIVER = 40, 32


def passing(beats: Floats, arrival: float, width: float) -> Floats:
    """Return blood that contrast passes, with recirculation."""
    late = np.maximum(beats - arrival, 0)
    recirculation = 0.25 * (1 - np.exp(-late / 8))
    return 0.1 + 0.85 * (late / (3 * width)) ** 3 * np.exp(3 - late / width) + recirculation


def staying(beats: Floats, arrival: float, slowness: float, height: float) -> Floats:
    """Return tissue that contrast reaches and does not leave."""
    return 0.1 + height * (1 - np.exp(-np.maximum(beats - arrival, 0) / slowness))


def simulated(seed: int, trait: str) -> tuple[Floats, int | None]:
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


def measured(trait: str, number: int) -> tuple[int | None, int | None]:
    """Return the peak that is measured in one heart, and the true one; None: none."""
    frames, truth = simulated(1000 * TRAITS.index(trait) + number, trait)
    curve = heart_curve(frames)
    passed = None if curve is None else first_pass(curve)
    return (None if passed is None or not passed.bolus_found else passed.t_peak), truth


def main() -> None:
    hearts = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    print("| trait | hearts | within two beats | not found | further off | found where none is |")
    print("|---|---|---|---|---|---|")
    for trait in TRAITS:
        tally = [0, 0, 0, 0]
        for number in range(hearts):
            peak, truth = measured(trait, number)
            if peak is None:
                tally[1] += 1
            elif truth is None:
                tally[3] += 1
            else:
                tally[0 if abs(peak - truth) <= NEAR else 2] += 1
        print(f"| {trait} | {hearts} | {' | '.join(map(str, tally))} |", flush=True)


if __name__ == "__main__":
    main()
