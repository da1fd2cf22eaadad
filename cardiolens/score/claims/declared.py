"""The declared comparison or question: tested alone at 5 % if no answer was there yet."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from cardiolens.score.statistics.comparisons import decided, reversed_row
from cardiolens.score.statistics.pooled_questions import DOUBLING
from cardiolens.score.statistics.statistic import Row

FAMILY = "declared"


@dataclass(frozen=True, slots=True)
class Declaration:
    """The time of a declaration, as the number of answers that were there; None if not known."""

    answered_before: int | None = 0

    @property
    def is_beforehand(self) -> bool:
        """Return whether it was declared before any answer could be looked at."""
        return self.answered_before == 0

    @property
    def when(self) -> str:
        """When it was declared, in words."""
        if self.answered_before is None:
            return "declared when it is not known how many answers were there already"
        if self.is_beforehand:
            return "declared before the run"
        answers = "1 answer was" if self.answered_before == 1 else f"{self.answered_before:,} answers were"
        return f"declared when {answers} there already"

    def tested(self, row: Row) -> Row:
        """The declared row: with its own tests if nothing was there, else as one of its family."""
        declared_row = {**row, "factor": row["factor"], "family": FAMILY}
        if self.is_beforehand:
            tests = {f"{test}_adjusted": row[test] for test in ("p", "within_p", "beyond_p")}
            declared_row |= {**tests, "adjustment": "alone", "family_size": 1}
        return declared_row | decided(declared_row)


@dataclass(frozen=True, slots=True)
class DeclaredComparison:
    """The headlines of two models on a tier."""

    model: str
    versus: str
    tier: int
    declaration: Declaration

    def row_of(self, rows: Sequence[Row]) -> Row | None:
        """The row of the declared comparison, in its direction; None if there is none that is tested."""
        for row in rows:
            if (row["factor"], row["tier"], row["metric"]) != ("model", self.tier, "primary"):
                continue
            pair = row["level"], row["versus"]
            if row["arm_id"] is None and {*pair} == {self.model, self.versus} and not row["simulated"]:
                in_order = row if pair[0] == self.model else reversed_row(row)
                return None if row["p"] is None else self.declaration.tested(in_order)
        return None


@dataclass(frozen=True, slots=True)
class DeclaredQuestion:
    """What a level of a factor does over all models on a tier; of budgets no level is named."""

    factor: str
    level: str | None
    tier: int
    claim: Literal["difference", "equivalence"]
    declaration: Declaration

    def row_of(self, rows: Sequence[Row]) -> Row | None:
        """The row of the declared question; None where the models share no setting that could answer it."""
        for row in rows:
            if (row["factor"], row["tier"], row["metric"]) != (self.factor, self.tier, "primary"):
                continue
            level = row["versus"] if self.factor == "control" else row["level"]
            is_named = self.factor == "budget" or level == self.level
            if row["n_models"] is not None and is_named and row["level"] != DOUBLING:
                return self.declaration.tested(row)
        return None
