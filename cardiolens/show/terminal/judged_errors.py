"""Terminal table of the errors that a judge names in reports."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from cardiolens.base.console import console, say
from cardiolens.config.arms import Arm


def show_report_errors(document: Mapping[str, Any], arms: Sequence[Arm]) -> None:
    """Print the counts by arm, and the agreement of the two orders and with entities."""
    every: list[Mapping[str, Any]] = list(document["arms"].values())
    columns = [name for counts in every[:1] for name in (*counts["by_type"], *counts["by_weight"])]
    table = Table(
        title=f"errors of reports that {document['model']} names in both orders",
        title_justify="left",
        caption=f"! {document['model']} judges what it wrote itself; no score of the run",
        caption_justify="left",
    )
    for name in ("model", "selector", "budget", "prompt"):
        table.add_column(name)
    for name in ("reports", "per report", *(name.replace("_", " ") for name in columns)):
        table.add_column(name, justify="right")
    for arm in arms:
        if (counts := document["arms"].get(arm.arm_id)) is not None:
            numbers = {**counts["by_type"], **counts["by_weight"]}
            cells = [str(counts["reports"]), f"{counts['errors_per_report']:.2f}"]
            labels = _labels(arm, document["judges_itself"])
            table.add_row(*labels, *cells, *(str(numbers[name]) for name in columns))
    console.print(table)
    for line in agreement_lines(document):
        say(line)


def agreement_lines(document: Mapping[str, Any]) -> list[str]:
    """How far the judge agrees with itself and with the rules' entities."""
    orders, entities = document["between_orders"], document["with_entities"]
    return [
        f"{document['reports']} reports, {document['unusable']} without two usable replies",
        f"between the two orders: F1 of errors {_number(orders['f1'])}, same weight "
        f"{_number(orders['same_weight'])}, equal reports {_number(orders['equal'])}",
        f"with entity F1 of the rules: Kendall's tau-b {_number(entities['tau_b'])} over "
        f"{entities['reports']} reports (-1 agrees best)",
    ]


def _labels(arm: Arm, itself: Sequence[str]) -> tuple[str, ...]:
    own = "!" if arm.arm_id in itself else ""
    return f"{arm.model.name}{own}", arm.selector_name, str(arm.budget), arm.prompt.name


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.2f}"
