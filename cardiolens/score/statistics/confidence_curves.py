"""Calibration and risk-coverage curves as statistics."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from cardiolens.score.statistics import discrimination as measure
from cardiolens.score.statistics.items import Bools, Floats, Ints
from cardiolens.score.statistics.metrics import ratio
from cardiolens.score.statistics.statistic import Basis, Statistic

COVERAGES = tuple(range(10, 101, 10))  # percent
BIN = "calibration"
RISK = "risk"
_BLOCK = 250  # resamples per block: weights per item are larger than the results


@dataclass(frozen=True, slots=True)
class ConfidentAnswers:
    """Answers with the model's confidence in each."""

    confidence: Floats
    right: Bools
    patient: Ints  # row of the cohort
    parse_status: NDArray[np.str_]

    @property
    def hospital(self) -> Ints:
        """Confidence is resampled over patients."""
        return np.full(len(self.patient), -1)

    @staticmethod
    def together(parts: Sequence["ConfidentAnswers"]) -> "ConfidentAnswers":
        """Concatenate the answers of several subtasks."""
        names = [field.name for field in fields(ConfidentAnswers)]
        return ConfidentAnswers(
            **{name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        )

    def where(self, selected: Bools) -> "ConfidentAnswers":
        """Some of the answers."""
        return ConfidentAnswers(*(getattr(self, field.name)[selected] for field in fields(self)))


def confidence_curves(answers: ConfidentAnswers, weights: Floats) -> dict[str, Statistic]:
    """Calibration and risk by metric.

    `calibration_error`, and of each tenth K of confidence that has answers `calibration.K.confidence` (their
    mean) and `calibration.K.accuracy`; `risk_area`, and `risk.C`, the share of wrong answers among the C %
    most confident.
    """
    blocks = [_block(answers, weights[at : at + _BLOCK]) for at in range(0, len(weights), _BLOCK)]
    values = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    basis = Basis.of(answers)
    statistics = {
        name: Statistic(value, basis) for name, value in values.items() if not name.startswith(f"{BIN}.")
    }
    for percent in COVERAGES:  # of the kept answers alone
        kept = replace(basis, effective_items=basis.n_items * percent / 100)
        statistics[f"{RISK}.{percent}"] = Statistic(values[f"{RISK}.{percent}"], kept)
    place = measure.bins(answers.confidence)
    for at in np.unique(place):
        bin_basis = Basis.of(answers.where(place == at))
        for name in (f"{BIN}.{at + 1}.confidence", f"{BIN}.{at + 1}.accuracy"):
            statistics[name] = Statistic(values[name], bin_basis)
    return statistics


def _block(answers: ConfidentAnswers, weights: Floats) -> dict[str, Floats]:
    inputs = answers.confidence, answers.right, weights[:, answers.patient]
    count, confidence, right = measure.calibration(*inputs)
    risk = measure.risk_at([percent / 100 for percent in COVERAGES], *inputs)
    curves = {
        "calibration_error": measure.calibration_error(*inputs),
        "risk_area": measure.risk_area(*inputs),
    }
    curves |= {f"{RISK}.{percent}": risk[:, at] for at, percent in enumerate(COVERAGES)}
    for at in range(measure.BINS):
        curves[f"{BIN}.{at + 1}.confidence"] = ratio(confidence[:, at], count[:, at])
        curves[f"{BIN}.{at + 1}.accuracy"] = ratio(right[:, at], count[:, at])
    return curves
