"""Witnesses and what they make likely: each says one thing and errs, independently, at a stated rate."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Witness:
    """One statement: who says it, what, how often such a statement is right, and on what it rests."""

    source: str  # words, tags, structure or geometry
    says: str
    reliability: float
    evidence: str

    def record(self) -> dict[str, object]:
        """As it stands in proposals.json."""
        return {
            "source": self.source,
            "says": self.says,
            "reliability": round(self.reliability, 3),
            "evidence": self.evidence,
        }


def weigh(witnesses: Iterable[Witness], classes: Sequence[str]) -> dict[str, float]:
    """Probability of each class if all are equally likely before and the witnesses err independently."""
    likely = dict.fromkeys(classes, 1.0)
    for witness in witnesses:
        for name in classes:
            likely[name] *= witness.reliability if name == witness.says else _else(witness, classes)
    total = sum(likely.values())
    return {name: value / total for name, value in likely.items()}


def _else(witness: Witness, classes: Sequence[str]) -> float:
    return (1 - witness.reliability) / (len(classes) - 1)


def best(likely: Mapping[str, float]) -> tuple[str, float]:
    """The likeliest class and its probability; the first named of equals."""
    name = max(likely, key=lambda key: likely[key])
    return name, likely[name]


def disagree(witnesses: Iterable[Witness]) -> bool:
    """Whether two witnesses say different things."""
    return len({witness.says for witness in witnesses}) > 1
