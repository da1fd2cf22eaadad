"""Shared parts of the analyses of protocol 11: tables with findings, and arms in words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cardiolens.score.claims.sentences import Finding
from cardiolens.score.statistics.factors import ArmFactors, factors_of
from cardiolens.score.statistics.rows import Row


@dataclass(frozen=True, slots=True)
class Analysis:
    """One analysis: a table and the findings from it."""

    name: str
    rows: Sequence[Row]
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class ArmDifferenceRow:
    """A score row of the difference of two arms."""

    ours: ArmFactors
    theirs: ArmFactors
    row: Row

    @property
    def metric(self) -> str:
        return str(self.row["metric"])

    @property
    def of_tier(self) -> bool:
        return str(self.row["scope"]).startswith("tier:")


def single_arm_rows(scores: Sequence[Row]) -> list[Row]:
    """Filter score rows to those of single arms."""
    return [row for row in scores if row["versus_arm_id"] is None]


def arm_differences(
    scores: Sequence[Row], arms: Sequence[ArmFactors], factor: str
) -> Iterator[ArmDifferenceRow]:
    """Yield the difference rows whose arms differ in a factor."""
    labels = factors_of(arms)
    for row in scores:
        ours, theirs = labels.get(str(row["arm_id"])), labels.get(str(row["versus_arm_id"]))
        if ours and theirs and getattr(ours, factor) != getattr(theirs, factor):
            yield ArmDifferenceRow(ours, theirs, row)


def where(pair: ArmDifferenceRow, factor: str) -> str:
    """Scope and setting of a difference in words, without the compared factor."""
    return f"{str(pair.row['scope']).replace(':', ' ')} ({setting(pair.ours, factor)})"


def setting(arm: ArmFactors, without: str = "") -> str:
    """An arm in words, without the compared factor."""
    words = {
        "model": arm.model,
        "selector": f"{arm.selector} selection",
        "budget": f"K = {arm.budget}",
        "prompt": f"{arm.prompt} prompt",
        "control": "" if arm.control == "none" else f"control {arm.control}",
        "wording": "" if arm.wording == "0" else f"wording {arm.wording}",
    }
    return ", ".join(word for name, word in words.items() if name != without and word)
