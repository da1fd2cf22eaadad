"""Guard bands: classify measured values and reject those between two classes (protocol 10.3)."""

from functools import lru_cache
from pathlib import Path

import yaml

Band = tuple[float, float]


class GuardBandError(ValueError):
    """A measured value lies between two classes."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name} {problem}")
        self.name = name


@lru_cache(maxsize=1)
def bands() -> dict[str, dict[str, Band]]:
    """Load the limits of each class, by name of the measured quantity."""
    tree = yaml.safe_load((Path(__file__).parent / "data" / "bands.yaml").read_text())
    return {
        name: {label: _band(*limits) for label, limits in classes.items()} for name, classes in tree.items()
    }


def classify(name: str, value: float) -> str:
    """Return the class of a value; GuardBandError if the value lies between two classes."""
    for label, (low, high) in bands()[name].items():
        if low <= value <= high:
            return label
    limits = ", ".join(f"{label} {low:g}..{high:g}" for label, (low, high) in bands()[name].items())
    raise GuardBandError(name, f"{value:.4g} is in a guard band of {limits}")


def _band(low: float | None, high: float | None) -> Band:
    return (float("-inf") if low is None else low, float("inf") if high is None else high)
