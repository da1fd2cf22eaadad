"""Class probabilities from witnesses that each name one class and err independently at a stated rate."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Witness:
    """One statement about a stack: source, named class, reliability and evidence."""

    source: str  # words, tags, structure, geometry, pixels or person
    says: str
    reliability: float  # how often a statement of this kind is right
    evidence: str

    def record(self) -> dict[str, object]:
        """Return the entry for proposals.json."""
        return {
            "source": self.source,
            "says": self.says,
            "reliability": round(self.reliability, 3),
            "evidence": self.evidence,
        }


def weigh(witnesses: Iterable[Witness], classes: Sequence[str]) -> dict[str, float]:
    """Return the posterior probability of each class: uniform prior, independent witnesses."""
    likely = dict.fromkeys(classes, 1.0)
    for witness in witnesses:
        for name in classes:
            likely[name] *= (
                witness.reliability if name == witness.says else _other_probability(witness, classes)
            )
    total = sum(likely.values())
    return {name: value / total for name, value in likely.items()}


def _other_probability(witness: Witness, classes: Sequence[str]) -> float:
    return (1 - witness.reliability) / (len(classes) - 1)


def best(likely: Mapping[str, float]) -> tuple[str, float]:
    """Return the likeliest class and its probability; the first class wins ties."""
    name = max(likely, key=lambda key: likely[key])
    return name, likely[name]


def disagree(witnesses: Iterable[Witness]) -> bool:
    """Return whether two witnesses name different classes."""
    return len({witness.says for witness in witnesses}) > 1
