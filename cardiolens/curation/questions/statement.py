"""A statement on a finding, as both extractors return it, with its evidence in the report."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ReportStatement:
    """One statement on one subtask; `value` is an option's text, or None where the words state no option."""

    subtask: str
    value: str | None
    start: int
    end: int
    quote: str  # text[start:end]
    section: str
    polarity: str
    certainty: str  # "certain", "uncertain", "historical" or "hypothetical"
    extractor: str
    measured: bool = False  # a number gives the value
    near: tuple[str, ...] = ()  # of a number between two options: both
    doubt: str | None = None  # a Reason why the value is not certain

    def record(self, number: int) -> dict[str, Any]:
        """An item of `findings-1`; ids count within one extractor and report."""
        return {"id": f"{self.extractor[0].upper()}{number}", **asdict(self), "near": list(self.near)}

    @staticmethod
    def of(record: dict[str, Any]) -> "ReportStatement":
        """The finding of a record."""
        fields = {name: value for name, value in record.items() if name != "id"}
        return ReportStatement(**fields | {"near": tuple(fields["near"])})
