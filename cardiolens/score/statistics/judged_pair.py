"""Two arms on the items judged in both."""

from collections.abc import Mapping
from dataclasses import dataclass

from cardiolens.base.errors import InputError
from cardiolens.score.statistics.answers import Answers
from cardiolens.score.statistics.items import Items
from cardiolens.score.statistics.report_scores import Reports
from cardiolens.score.statistics.statistic import Basis


@dataclass(frozen=True, slots=True)
class Pair:
    """Two arms on the items judged in both, in the same order."""

    arm: Answers
    versus: Answers
    complete: bool  # neither was judged on others
    answers: tuple[Answers, Answers]  # of both, judged or not

    @staticmethod
    def of(judged: Mapping[str, Answers], answers: Mapping[str, Answers], arm: str, versus: str) -> "Pair":
        """Take the common items of two arms; an arm without judged items is an InputError."""
        for name in (arm, versus):
            if name not in judged:
                raise InputError(f"arm {name!r} has no judged item; compare two of {', '.join(judged)}")
        first, second = judged[arm], judged[versus]
        ours, theirs = first.common_with(second), second.common_with(first)
        complete = len(ours) == len(first) and len(theirs) == len(second)
        return Pair(ours, theirs, complete, (answers[arm], answers[versus]))

    def in_scope(self, scope: str) -> tuple[Items | Reports, Items | Reports]:
        """The rows of both arms behind a statistic of this scope; of reports, those of fields."""
        return of_fields(self.arm.in_scope(scope)), of_fields(self.versus.in_scope(scope))

    @property
    def differing(self) -> tuple[Answers, Answers]:
        """Both arms on the items whose requests differ."""
        items = self.arm.items.request != self.versus.items.request
        reports = self.arm.reports.request != self.versus.reports.request
        return (
            Answers(self.arm.items.where(items), self.arm.reports.where(reports)),
            Answers(self.versus.items.where(items), self.versus.reports.where(reports)),
        )

    @property
    def same(self) -> int:
        """Number of items that have the same request in both arms."""
        return len(self.arm) - len(self.differing[0])


def of_fields(rows: Items | Reports) -> Items | Reports:
    """Drop the `text` channel of reports, which is not an item of its own."""
    return rows if isinstance(rows, Items) else rows.where(rows.channel == "fields")


def basis_of(rows: Items | Reports, scope: str) -> Basis:
    """Count the rows of a score in a scope; tier 3 is a mean over classes."""
    if isinstance(rows, Reports):
        return rows.basis()
    return Basis.of(rows).of_classes(rows) if scope == "tier:3" else Basis.of(rows)
