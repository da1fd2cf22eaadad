"""Terminal output of a second reading: both scores of the text of reports, and how far they agree."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from cardiolens.base.console import console, say
from cardiolens.config.arms import Arm


def show_readings(document: Mapping[str, Any], arms: Sequence[Arm]) -> None:
    """Print F1 of entities of the text by the rules and by the model, and of the one against the other."""
    reader = document["model"]
    table = Table(
        title="entities of report text, F1 in percent with 95 % intervals over patients",
        title_justify="left",
        caption=f"over the texts that both read; ! {reader} reads what it wrote itself",
        caption_justify="left",
    )
    for name in ("model", "selector", "budget", "prompt", "rules", reader, "agreement", "n"):
        table.add_column(name, justify="left" if name in ("model", "selector", "prompt") else "right")
    scores = document["scores"]
    for arm in arms:
        if (by_rules := scores["rules"].get(arm.arm_id)) is None:
            continue
        own = "!" if arm.arm_id in document["reads_itself"] else ""
        cells = [_cell(scores[name].get(arm.arm_id)) for name in ("rules", "model", "agreement")]
        labels = (f"{arm.model.name}{own}", arm.selector_name, str(arm.budget), arm.prompt.name)
        table.add_row(*labels, *cells, str(by_rules["n_items"]))
    console.print(table)
    unread = f", {document['unread']} without a usable reading" if document["unread"] else ""
    say(f"{document['texts']} texts, {document['distinct_texts']} of them distinct{unread}")


def _cell(row: Mapping[str, Any] | None) -> str:
    return "-" if row is None else f"{row['value']:.1f} [{row['low']:.1f}, {row['high']:.1f}]"
