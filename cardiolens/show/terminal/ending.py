"""The end of a sweep as a result: the page's answers, and models by tier."""

import io
import math
from collections.abc import Iterator, Mapping

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cardiolens.base.phrasing import counted
from cardiolens.score.run_results.run_analyses import AnalysisRow
from cardiolens.score.statistics.bootstrap import FEWEST_FOR_CLAIM
from cardiolens.score.statistics.factors import FACTORS
from cardiolens.score.statistics.statistic import TIERS
from cardiolens.score.statistics.verdict_rows import percent_read
from cardiolens.show.page.cards import NOT_ASKED, cards, too_few_items
from cardiolens.show.page.columns import ends, model_of, setting
from cardiolens.show.page.page_data import Facts

_MOST_ANSWERS = 5
_MOST_ROWS = 24  # of a table of arms, where models have no headline

Scores = Mapping[str, AnalysisRow]  # of one model or arm, by tier


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
    scores = _scores(facts)
    simulated = {key: by_tier for key, by_tier in scores.items() if _model(facts, key) in facts.simulated}
    shown = {key: by_tier for key, by_tier in scores.items() if key not in simulated} or simulated
    if shown:
        yield ""
        yield Text(_title(facts, scores))
        named = {_name(facts, key): by_tier for key, by_tier in shown.items()}
        yield _table(named)
        yield from _notes(named)
    elif len(facts.arms) > _MOST_ROWS:
        yield f"{len(facts.arms)} arms, none at slice budget 16 with the standard prompt: see the page"
    if simulated and shown is simulated:
        yield "Simulated readers only: these numbers test the software, not a model."
    elif simulated:
        values = "; ".join(
            f"{_name(facts, key)} {', '.join(map(_value, by_tier.values()))}"
            for key, by_tier in simulated.items()
        )
        yield Text(f"Simulated readers, which test the software: {values}")


def _scores(facts: Facts) -> dict[str, dict[str, AnalysisRow]]:
    """Tier scores of headlines, the highest first; without any, of the arms if these are few."""
    rows = facts.scores_of(["primary"], "tier:")
    shown = [row for row in rows if model_of(row)]
    if is_of_arms := not shown:
        keys = {arm.arm_id for arm in facts.arms if arm.control == "none"}
        shown = [row for row in rows if row["arm_id"] in keys and len(keys) <= _MOST_ROWS]
    scores: dict[str, dict[str, AnalysisRow]] = {}
    for row in shown:
        scores.setdefault(str(row["arm_id"]), {})[str(row["scope"])] = row
    defined = [
        (key, by_tier)
        for key, by_tier in scores.items()
        if not all(math.isnan(row["value"]) for row in by_tier.values())
    ]
    if not is_of_arms:
        defined.sort(key=lambda item: [_rank(item[1].get(tier)) for tier in TIERS])
    return dict(defined)


def _rank(row: AnalysisRow | None) -> float:
    return math.inf if row is None or math.isnan(row["value"]) else -row["value"]


def _model(facts: Facts, key: str) -> str:
    """The model of an arm or a headline."""
    arm = facts.arm(key)
    return model_of({"arm_id": key}) if arm is None else arm.model


def _name(facts: Facts, key: str) -> str:
    """The model of a headline; of an arm, its model and whatever differs between the run's arms."""
    model, arm = _model(facts, key), facts.arm(key)
    if arm is None:
        return model
    same = [name for name in FACTORS if len({getattr(each, name) for each in facts.arms}) == 1]
    return f"{model} {setting(arm, *same).replace(' · ', ' ')}".strip()


def _title(facts: Facts, scores: Mapping[str, Scores]) -> str:
    rows = [row for by_tier in scores.values() for row in by_tier.values()]
    patients = max(int(row["n_patients"]) for row in rows)
    of_headlines = any(facts.arm(key) is None for key in scores)
    over = "slice budget 16, standard prompt, mean over selections" if of_headlines else "of each arm"
    interval = f"no interval to rely on with fewer than {FEWEST_FOR_CLAIM}"
    if any(not math.isnan(ends(row)["low"]) for row in rows):
        interval = "95 % intervals in brackets"
    return f"Scores in percent, {over}; {counted(patients, 'patient')}, {interval}:"


def _table(scores: Mapping[str, Scores]) -> Table:
    tiers = [tier for tier in TIERS if any(tier in by_tier for by_tier in scores.values())]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("model", overflow="fold")
    for tier in tiers:
        table.add_column(tier.replace(":", " "), no_wrap=True)
    for name, by_tier in scores.items():
        table.add_row(Text(name), *(Text(_cell(by_tier.get(tier))) for tier in tiers))
    return table


def _cell(row: AnalysisRow | None) -> str:
    """A score with its interval, if that is one to rely on: the page's answers print no other."""
    if row is None or math.isnan(ends(row)["low"]):
        return _value(row)
    return f"{_value(row)} [{row['low']:.0f}, {row['high']:.0f}]"


def _value(row: AnalysisRow | None) -> str:
    return "none" if row is None or math.isnan(row["value"]) else f"{row['value']:.1f}"


def _notes(scores: Mapping[str, Scores]) -> Iterator[Text]:
    """What must be known of single scores: that replies could not be read, or are missing."""
    cells = [(name, tier.replace(":", " "), row) for name, of in scores.items() for tier, row in of.items()]
    shares = [(name, tier, percent_read(row)) for name, tier, row in cells]
    if unread := [f"{name} {percent} % on {tier}" for name, tier, percent in shares if percent is not None]:
        yield Text(f"Replies that could be read: {', '.join(unread)}")
    if partly := [f"{name} on {tier}" for name, tier, row in cells if row["percent_judged"] is not None]:
        yield Text(f"Incomplete: {', '.join(partly)}")
