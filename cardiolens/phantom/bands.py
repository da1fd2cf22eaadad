"""Guard bands: a measured value belongs to one class, or to none (protocol 10.3)."""

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
    """The classes of every driver with their limits."""
    tree = yaml.safe_load((Path(__file__).parent / "data" / "bands.yaml").read_text())
    return {
        name: {label: _band(*limits) for label, limits in classes.items()} for name, classes in tree.items()
    }


def classify(name: str, value: float) -> str:
    """The class of a value; GuardBandError if it lies in none."""
    for label, (low, high) in bands()[name].items():
        if low <= value <= high:
            return label
    limits = ", ".join(f"{label} {low:g}..{high:g}" for label, (low, high) in bands()[name].items())
    raise GuardBandError(name, f"{value:.4g} is in a guard band of {limits}")


def _band(low: float | None, high: float | None) -> Band:
    return (float("-inf") if low is None else low, float("inf") if high is None else high)
