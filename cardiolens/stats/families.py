"""Families of tests: every comparison that could have put a sentence on the page (protocol 16.6)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cardiolens.stats.cells import BESIDE
from cardiolens.stats.inference import holm

SWAP_P, HOLM_P = "swap_p", "holm_p"
EQUIVALENCE_P, EQUIVALENCE_HOLM_P = "primary.equivalence_p", "primary.equivalence_holm_p"
# what a run varies; whatever of it changes scores is one question, so that a run, not a factor, errs at 5 %
RUN = ("selector", "budget", "prompt", "control")


@dataclass(frozen=True, slots=True)
class Tested:
    """A row that holds a p-value, and the question that it belongs to."""

    question: str  # a factor, or what else is compared
    row: dict[str, object]
    simulated: bool = False  # a reader that is no model: a family of its own

    @property
    def family(self) -> tuple[str, ...] | None:
        """The family that Holm adjusts over; None where no sentence is made of the row."""
        metric, _, kind = str(self.row["metric"]).rpartition(".")
        if metric in BESIDE and self.question != "prompt":
            return None
        below = "" if str(self.row["scope"]).startswith("tier:") else "subtasks and sequences"
        question = "what the run varied" if self.question in RUN else self.question
        return kind, question, below, "simulated readers" if self.simulated else ""


def adjusted_rows(tests: Iterable[Tested]) -> list[dict[str, object]]:
    """Copies of rows of p-values with those that Holm gives over their family."""
    families: dict[tuple[str, ...], list[dict[str, object]]] = {}
    for test in tests:
        if test.family is not None:
            families.setdefault(test.family, []).append(test.row)
    return [row for (_, *words), rows in sorted(families.items()) for row in _adjusted(words, rows)]


def _adjusted(words: Sequence[str], rows: Sequence[dict[str, object]]) -> list[dict[str, object]]:
    note = f"Holm over {len(rows)} comparisons of {', '.join(filter(None, words))}"
    values = holm([float(str(row["value"])) for row in rows])
    return [
        row | {"metric": _holm_name(str(row["metric"])), "value": value, "method": f"{note}; {row['method']}"}
        for row, value in zip(rows, values, strict=True)
    ]


def _holm_name(metric: str) -> str:
    return EQUIVALENCE_HOLM_P if metric == EQUIVALENCE_P else metric.replace(SWAP_P, HOLM_P)
