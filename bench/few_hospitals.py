"""Coverage of 95 % intervals over few hospitals whose effects differ: percentiles, t, and over patients.

    python -m bench.few_hospitals --cohorts 1500

A patient's paired difference has an SD of 15 points, the effects of hospitals one of 3 around 2 points.
"""

import argparse

import numpy as np
from numpy.typing import NDArray

from cardiolens.score.statistics.bootstrap import (
    over_hospitals,
    percentile,
    resampling_weights,
    variance_inflation,
)

Floats = NDArray[np.float64]

SIZES = ((40,) * 5, (80, 50, 40, 20, 10), (100, 40, 20, 20, 10, 10), (25,) * 8)
RESAMPLES = 400
EFFECT, HOSPITAL_SD, PATIENT_SD = 2.0, 3.0, 15.0


def coverage(sizes: tuple[int, ...], cohorts: int) -> Floats:
    """Percent of cohorts whose interval holds the effect: over patients, percentiles, and t."""
    hospital = np.repeat(np.arange(len(sizes)), sizes)
    whole = resampling_weights(len(hospital), RESAMPLES, 1, hospital)
    single = resampling_weights(len(hospital), RESAMPLES, 1)
    held = np.zeros(3)
    for seed in range(cohorts):
        dice = np.random.default_rng([43, seed])
        change = dice.normal(EFFECT, HOSPITAL_SD, len(sizes))[hospital]
        change = change + dice.normal(0, PATIENT_SD, len(hospital))
        over_patients, values = (weights @ change / weights.sum(axis=1) for weights in (single, whole))
        intervals = (
            percentile(over_patients, patients=len(hospital)),
            percentile(values, patients=len(sizes)),
            over_hospitals(values, 0.95, len(sizes), variance_inflation(np.array(sizes))),
        )
        held += [interval.low <= EFFECT <= interval.high for interval in intervals]
    return 100 * held / cohorts


def main() -> None:
    """Print the table of bench/results/statistics.md."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--cohorts", type=int, default=1500)
    cohorts = arguments.parse_args().cohorts
    print("| patients of each hospital | over patients covers % | percentiles % | t % |\n|---|---|---|---|")
    for sizes in SIZES:
        found = " | ".join(f"{share:.1f}" for share in coverage(sizes, cohorts))
        print(f"| {' '.join(map(str, sizes))} | {found} |", flush=True)


if __name__ == "__main__":
    main()
