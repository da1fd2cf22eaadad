"""Differences between arms that differ in one factor: a row per pair and scope, with its reading."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from cardiolens.score.claims import sentences
from cardiolens.score.claims.evidence_analysis import Evidence, Rows
from cardiolens.score.claims.sentences import Finding
from cardiolens.score.run_results.run_analyses import AnalysisRow
from cardiolens.score.statistics.factors import FACTORS, ArmFactors
from cardiolens.score.statistics.read_in_both import READ_IN_BOTH
from cardiolens.show.page.columns import COUNTS, HIGH, LOW, METHOD, SCOPE, scope_words, setting
from cardiolens.show.page.elements import Column, Table
from cardiolens.show.page.page_data import Facts

Reading = Literal["shown", "equivalent", "open", "explored"]

READINGS: Mapping[Reading, str] = {
    "shown": "difference shown",
    "equivalent": "within 2 points",
    "open": "cannot be told",
    "explored": "explored, not claimed",
}
_METRICS = (
    *("primary", "primary.holm_p", "primary.fdr_p", "primary.bounds", "primary.equivalence"),
    *("primary.equivalence_holm_p", "primary.equivalence_fdr_p", "primary.equivalence_differing"),
    f"primary.{READ_IN_BOTH}",
)
_NAMES = {
    **{"model": "model", "selector": "selection", "budget": "K", "prompt": "prompt", "control": "control"},
    "wording": "wording",
}
ESTIMATE = (  # a difference with both intervals, what may be said of it, and its test
    Column("value", "difference", "points"),
    Column("low", LOW.title, "points"),
    Column("high", HIGH.title, "points"),
    Column("low_90", "90 % CI from", "points"),
    Column("high_90", "to", "points"),
    Column("reading", "reading"),
    Column("adjusted_p", "adjusted p", "p"),
)
_COLUMNS = (
    SCOPE,
    Column("comparison", "comparison"),
    Column("line", "line"),
    *ESTIMATE,
    *COUNTS,
    Column("n_same_request", "same request", "count"),
    Column("at_once", "on items read at once", "points"),
    Column("n_at_once", "these items", "count"),
    METHOD,
)


@dataclass(frozen=True, slots=True)
class Difference:
    """One arm minus another at one scope, on the items that both were judged on."""

    ours: ArmFactors
    theirs: ArmFactors
    factor: str
    row: AnalysisRow
    equivalence: AnalysisRow
    by_metric: Rows  # all rows of the pair at this scope

    @property
    def adjusted_p(self) -> float | None:
        """The p-value after Holm over its family, or the false discovery rate where it is only explored."""
        p = self._evidence.adjusted_p
        return None if math.isnan(p) else p

    @property
    def _evidence(self) -> Evidence:
        return Evidence.of(self.by_metric, "primary")

    @property
    def scope(self) -> str:
        return str(self.row["scope"])

    @property
    def comparison(self) -> str:
        """The two settings that were subtracted, e.g. clinical − random@2026."""
        prefix = "K = " if self.factor == "budget" else ""
        return f"{prefix}{getattr(self.ours, self.factor)} − {getattr(self.theirs, self.factor)}"

    @property
    def line(self) -> str:
        """The comparison, with the settings that distinguish it from others of the same model and prompt."""
        if self.factor == "control":
            return f"− {self.theirs.control} · {setting(self.ours, 'control')}"
        if self.factor == "prompt":
            return setting(self.ours, "prompt", "control")
        return f"{self.comparison} · {setting(self.ours, self.factor, 'prompt', 'control')}"

    @property
    def reading(self) -> Reading:
        """The conclusion that is allowed: a difference, equivalence, or neither."""
        if self._evidence.exploratory:
            return "explored"
        if self.change.side is not None:
            return "shown"
        equivalence = sentences.equivalence("", "", "", self.equivalence, self.by_metric)
        return "equivalent" if equivalence.side == "within" else "open"

    @property
    def change(self) -> Finding:
        """The sentence on this difference, which says no more than its interval."""
        cause = f"{_NAMES[self.factor]} {getattr(self.ours, self.factor)} instead of "
        cause += str(getattr(self.theirs, self.factor))
        target = f"the score on {scope_words(self.scope)} ({self.ours.model})"
        return sentences.change(cause[0].upper() + cause[1:], target, self.row, self._evidence)


def differences(facts: Facts, factor: str) -> list[Difference]:
    """Every pair of arms that differ in one factor alone, on every tier."""
    arms = {arm.arm_id: arm for arm in facts.arms}
    by_pair: dict[tuple[str, str, str], dict[str, AnalysisRow]] = {}
    for row in facts.of_pairs(_METRICS, "tier:"):
        if row["arm_id"] in arms and row["versus_arm_id"] in arms:
            key = row["arm_id"], row["versus_arm_id"], row["scope"]
            by_pair.setdefault(key, {})[row["metric"]] = row
    return [
        Difference(
            arms[ours],
            arms[theirs],
            factor,
            rows["primary"],
            rows.get("primary.equivalence", rows["primary"]),
            rows,
        )
        for (ours, theirs, _), rows in by_pair.items()
        if _differing_factors(arms[ours], arms[theirs]) == [factor] and "primary" in rows
    ]


def _differing_factors(first: ArmFactors, second: ArmFactors) -> list[str]:
    return [name for name in FACTORS if getattr(first, name) != getattr(second, name)]


def difference_table(name: str, title: str, comparisons: list[Difference], facts: Facts) -> Table:
    """Differences as rows, with the settings of the factors that both arms share."""
    factor = comparisons[0].factor if comparisons else ""
    has_wordings = any(arm.wording != "0" for arm in facts.arms)
    factors = [name for name in FACTORS if name != "wording" or has_wordings]
    setting = tuple(
        Column(other_factor, _NAMES[other_factor]) for other_factor in factors if other_factor != factor
    )
    return Table.of(
        name, title, (*setting, *_COLUMNS), [_record(difference, facts) for difference in comparisons]
    )


def _record(difference: Difference, facts: Facts) -> dict[str, object]:
    star = "*" if difference.ours.model in facts.simulated else ""
    at_once = difference.by_metric.get(f"primary.{READ_IN_BOTH}", {})  # without one, all items are
    return {
        **difference.row,
        "model": f"{difference.ours.model}{star}",
        **{name: getattr(difference.ours, name) for name in FACTORS if name != "model"},
        "scope": scope_words(difference.scope),
        "comparison": difference.comparison,
        "line": difference.line,
        "low_90": difference.equivalence["low"],
        "high_90": difference.equivalence["high"],
        "reading": READINGS[difference.reading],
        "adjusted_p": difference.adjusted_p,
        "at_once": at_once.get("value"),
        "n_at_once": at_once.get("n_items"),
    }
