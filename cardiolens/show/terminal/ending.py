"""The end of a sweep as a result: the page's answers, and models by tier."""

import io
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cardiolens.base.phrasing import counted
from cardiolens.score.run_results.run_analyses import AnalysisRow
from cardiolens.score.statistics.bootstrap import FEWEST_FOR_CLAIM
from cardiolens.score.statistics.factors import FACTORS, ArmFactors
from cardiolens.score.statistics.statistic import TIERS
from cardiolens.score.statistics.verdict_rows import percent_read
from cardiolens.show.page.cards import NOT_ASKED, cards, too_few_items
from cardiolens.show.page.columns import ends, model_of, setting
from cardiolens.show.page.page_data import Facts

_MOST_ANSWERS = 5
_MOST_ROWS = 24  # of a table of arms, where models have no headline


class _Line(NamedTuple):
    """Scores by tier of the headline of a model, or of one of its arms."""

    model: str
    name: str
    by_tier: Mapping[str, AnalysisRow]


def ending(facts: Facts, width: int) -> list[str]:
    """Return the lines of a sweep's end, none of them wider than `width` columns."""
    printed = io.StringIO()
    console = Console(file=printed, width=width, color_system=None)
    for part in _parts(facts):
        console.print(part)
    return [line.rstrip() for line in printed.getvalue().splitlines()]


def _parts(facts: Facts) -> Iterator[RenderableType]:
    """Yield the first answers of the page to what the run asked, then the scores."""
    for card in [card for card in cards(facts) if card.verdict not in NOT_ASKED][:_MOST_ANSWERS]:
        yield Text(f"{card.question} {card.verdict}")
        yield Padding(Text(card.sentence), (0, 0, 0, 2))
    if too_few := too_few_items(facts):
        yield Text(too_few)
    lines = _lines(facts)
    simulated = [line for line in lines if line.model in facts.simulated]
    shown = [line for line in lines if line not in simulated] or simulated
    if shown:
        yield ""
        yield Text(_title(lines))
        yield _table(shown)
        yield from _notes(shown)
    elif len(facts.arms) > _MOST_ROWS:
        yield f"{len(facts.arms)} arms, none at slice budget 16 with the standard prompt: see the page"
    if simulated and shown is simulated:
        yield "Simulated readers only: these numbers test the software, not a model."
    elif simulated:
        values = "; ".join(
            f"{line.name} {', '.join(map(_value, line.by_tier.values()))}" for line in simulated
        )
        yield Text(f"Simulated readers, which test the software: {values}")


def _lines(facts: Facts) -> list[_Line]:
    """Lines of headlines, the highest first; without any, of the arms if these are few."""
    scores: dict[str, dict[str, AnalysisRow]] = {}
    for row in facts.scores_of(["primary"], "tier:"):
        scores.setdefault(row["arm_id"], {})[row["scope"]] = row
    models = {key: model for key in scores if (model := model_of({"arm_id": key}))}
    lines = [_Line(model, model, scores[key]) for key, model in models.items()]
    if not lines:
        arms = [arm for arm in facts.arms if arm.control == "none"]
        few = arms if len(arms) <= _MOST_ROWS else []
        lines = [_Line(arm.model, _name(facts, arm), scores.get(arm.arm_id, {})) for arm in few]
    defined = [line for line in lines if not all(math.isnan(row["value"]) for row in line.by_tier.values())]
    return sorted(defined, key=_rank) if models else defined


def _rank(line: _Line) -> list[float]:
    values = [line.by_tier[tier]["value"] if tier in line.by_tier else math.nan for tier in TIERS]
    return [math.inf if math.isnan(value) else -value for value in values]


def _name(facts: Facts, arm: ArmFactors) -> str:
    """The model of an arm, and whatever differs between the run's arms."""
    same = [name for name in FACTORS if len({getattr(each, name) for each in facts.arms}) == 1]
    return f"{arm.model} {setting(arm, *same).replace(' · ', ' ')}".strip()


def _title(lines: Sequence[_Line]) -> str:
    rows = [row for line in lines for row in line.by_tier.values()]
    patients = max(int(row["n_patients"]) for row in rows)
    of_headlines = any(map(model_of, rows))
    over = "slice budget 16, standard prompt, mean over selections" if of_headlines else "of each arm"
    interval = f"no interval to rely on with fewer than {FEWEST_FOR_CLAIM}"
    if any(not math.isnan(ends(row)["low"]) for row in rows):
        interval = "95 % intervals in brackets"
    return f"Scores in percent, {over}; {counted(patients, 'patient')}, {interval}:"


def _table(lines: Sequence[_Line]) -> Table:
    tiers = [tier for tier in TIERS if any(tier in line.by_tier for line in lines)]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("model", overflow="fold")
    for tier in tiers:
        table.add_column(tier.replace(":", " "), no_wrap=True)
    for line in lines:
        table.add_row(Text(line.name), *(Text(_cell(line.by_tier.get(tier))) for tier in tiers))
    return table


def _cell(row: AnalysisRow | None) -> str:
    """A score with its interval, if that is one to rely on: the page's answers print no other."""
    if row is None or math.isnan(ends(row)["low"]):
        return _value(row)
    return f"{_value(row)} [{row['low']:.0f}, {row['high']:.0f}]"


def _value(row: AnalysisRow | None) -> str:
    return "none" if row is None or math.isnan(row["value"]) else f"{row['value']:.1f}"


def _notes(lines: Sequence[_Line]) -> Iterator[Text]:
    """What must be known of single scores: that replies could not be read, or are missing."""
    cells = [(line.name, tier.replace(":", " "), row) for line in lines for tier, row in line.by_tier.items()]
    shares = [(name, tier, percent_read(row)) for name, tier, row in cells]
    if unread := [f"{name} {percent} % on {tier}" for name, tier, percent in shares if percent is not None]:
        yield Text(f"Replies that could be read: {', '.join(unread)}")
    if partly := [f"{name} on {tier}" for name, tier, row in cells if row["percent_judged"] is not None]:
        yield Text(f"Incomplete: {', '.join(partly)}")
