"""Adjustment of p-values over families: Holm where sentences claim, else false discovery (16.6, 17.6)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from cardiolens.score.statistics.cells import EXTRA_METRICS
from cardiolens.score.statistics.hypothesis_tests import false_discovery, holm
from cardiolens.storage.schemas import SCORES
from cardiolens.storage.spool import Spool
from cardiolens.storage.tables import from_rows

_AT_ONCE = 4096  # rows of a family that are buffered in memory

SWAP_P, HOLM_P, FDR_P = "swap_p", "holm_p", "fdr_p"
INTERVAL_P = "interval_p"  # of questions pooled over models
EQUIVALENCE_P, EQUIVALENCE_HOLM_P = "primary.equivalence_p", "primary.equivalence_holm_p"
BEYOND_P, BEYOND_HOLM_P = "primary.beyond_p", "primary.beyond_holm_p"  # a difference beyond the margin
# factors that a run varies: what models do in single settings is explored, and claimed over all (17.6)
RUN = ("selector", "budget", "prompt", "control")


@dataclass(frozen=True, slots=True)
class PValueRow:
    """A score row that holds a p-value, and the question that it tests."""

    question: str  # the compared factor, or another question
    row: dict[str, object]
    simulated: bool = False  # a reader that is no model: a family of its own

    @property
    def is_exploratory(self) -> bool:
        """Return whether no sentence may claim it: it gets a false discovery rate."""
        return self.question in RUN and not self.simulated

    @property
    def family(self) -> tuple[str, ...] | None:
        """The family over which p-values are adjusted; None if no sentence uses the row."""
        metric, _, kind = str(self.row["metric"]).rpartition(".")
        if metric in EXTRA_METRICS and self.question != "prompt":
            return None
        below = "" if str(self.row["scope"]).startswith("tier:") else "subtasks and sequences"
        question = "what the run varied" if self.question in RUN else self.question
        return kind, question, below, "simulated readers" if self.simulated else ""


class Tests:
    """Rows of p-values by family, spilled to files: runs of many models have hundreds of thousands."""

    def __init__(self) -> None:
        self._families: dict[tuple[str, ...], _Family] = {}

    def add(self, tests: Iterable[PValueRow]) -> None:
        """Put tests into their families."""
        for test in tests:
            if test.family is not None:
                self._families.setdefault(test.family, _Family(test.is_exploratory)).add(test.row)

    def adjusted(self) -> Iterator[list[dict[str, object]]]:
        """Yield copies of the rows with adjusted p-values, in blocks."""
        for (_, *words), family in sorted(self._families.items(), key=lambda entry: entry[0]):
            yield from family.adjusted(words)


class _Family:
    """The rows of one family in the order in which they came."""

    def __init__(self, is_exploratory: bool) -> None:
        self._is_exploratory = is_exploratory
        self._spool = Spool(SCORES)
        self._rows: list[dict[str, object]] = []
        self._values: list[float] = []

    def add(self, row: dict[str, object]) -> None:
        self._rows.append(row)
        self._values.append(float(str(row["value"])))
        if len(self._rows) >= _AT_ONCE:
            self._put_away()

    def adjusted(self, words: Sequence[str]) -> Iterator[list[dict[str, object]]]:
        self._put_away()
        how = "false discovery rate" if self._is_exploratory else "Holm"
        note = f"{how} over {len(self._values)} comparisons of {', '.join(filter(None, words))}"
        values = iter((false_discovery if self._is_exploratory else holm)(self._values))
        for part in self._spool.parts():
            yield [
                row
                | {
                    "metric": adjusted_name(str(row["metric"]), FDR_P if self._is_exploratory else HOLM_P),
                    "value": next(values),
                    "method": f"{note}; {row['method']}",
                }
                for row in part.to_pylist()
            ]

    def _put_away(self) -> None:
        self._spool.add(from_rows(self._rows, SCORES))
        self._rows = []


def adjusted_name(metric: str, suffix: str) -> str:
    """The metric of an adjusted p, e.g. `primary.holm_p` of `primary.swap_p`."""
    if metric in (EQUIVALENCE_P, BEYOND_P):
        return f"{metric.removesuffix('p')}{suffix}"
    return f"{metric.rpartition('.')[0]}.{suffix}"
