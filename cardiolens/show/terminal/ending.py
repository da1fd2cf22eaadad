"""The end of a sweep as a result: the page's answers, models by tier, and where everything else is."""

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from cardiolens.base.phrasing import counted
from cardiolens.score.run_results.run_analyses import AnalysisRow
from cardiolens.score.statistics.bootstrap import FEWEST_FOR_CLAIM
from cardiolens.score.statistics.factors import ArmFactors
from cardiolens.score.statistics.headlines import PREFIX
from cardiolens.score.statistics.statistic import TIERS
from cardiolens.score.statistics.verdict_rows import percent_read
from cardiolens.show.page.cards import NOT_ASKED, cards, too_few_items
from cardiolens.show.page.columns import ends
from cardiolens.show.page.elements import Card
from cardiolens.show.page.page_data import Facts

_MOST_ANSWERS = 5
_MOST_ROWS = 24  # of a table of arms, where models have no headline
_GAP = "  "

Scores = Mapping[str, AnalysisRow]  # of one model or arm, by tier


def ending(facts: Facts, width: int) -> list[str]:
    """Return the lines of a sweep's end, none of them wider than `width` columns."""
    scores = _scores(facts)
    named = {_name(facts, key): by_tier for key, by_tier in scores.items() if not _is_simulated(facts, key)}
    simulated = {_name(facts, key): by_tier for key, by_tier in scores.items() if _is_simulated(facts, key)}
    lines = [line for answer in _asked(facts) for line in _answer(answer, width)]
    lines += _filled(too_few_items(facts), width)
    if named or simulated:
        lines += ["", *_filled(_title(facts, scores), width), *_table(named or simulated, width)]
        lines += _notes(named or simulated, width)
    elif len(facts.arms) > _MOST_ROWS:
        none = f"{len(facts.arms)} arms, none at slice budget 16 with the standard prompt: see the page"
        lines += _filled(none, width)
    if simulated and not named:
        lines += _filled("Simulated readers only: these numbers test the software, not a model.", width)
    elif simulated:
        tiers = _tiers(simulated)
        values = "; ".join(
            f"{name} {', '.join(_value(by_tier.get(tier)) for tier in tiers)}"
            for name, by_tier in simulated.items()
        )
        lines += _filled(f"Simulated readers, which test the software: {values}", width)
    return lines


def _asked(facts: Facts) -> list[Card]:
    """The first answers of the page to what the run asked."""
    return [card for card in cards(facts) if card.verdict not in NOT_ASKED][:_MOST_ANSWERS]


def _answer(answer: Card, width: int) -> list[str]:
    return [
        *_filled(f"{answer.question} {answer.verdict}", width),
        *_filled(answer.sentence, width, indent=2),
    ]


def _scores(facts: Facts) -> dict[str, dict[str, AnalysisRow]]:
    """Tier scores of headlines; without any, of the arms without control if these are few."""
    rows = facts.scores_of(["primary"], "tier:")
    headlines = [row for row in rows if str(row["arm_id"]).startswith(PREFIX)]
    if not headlines:
        keys = {arm.arm_id for arm in facts.arms if arm.control == "none"}
        rows = [row for row in rows if row["arm_id"] in keys] if len(keys) <= _MOST_ROWS else []
    scores: dict[str, dict[str, AnalysisRow]] = {}
    for row in headlines or rows:
        scores.setdefault(str(row["arm_id"]), {})[str(row["scope"])] = row
    defined = {key: by_tier for key, by_tier in scores.items() if any(map(_is_defined, by_tier.values()))}
    if not headlines:
        return defined
    return dict(sorted(defined.items(), key=lambda item: _rank(item[1])))


def _is_defined(row: AnalysisRow) -> bool:
    return not math.isnan(row["value"])


def _rank(by_tier: Scores) -> list[float]:
    """What sorts models: the highest score on the first tier stands first."""
    rows = [by_tier.get(tier) for tier in TIERS]
    return [-row["value"] if row and _is_defined(row) else math.inf for row in rows]


def _is_simulated(facts: Facts, key: str) -> bool:
    arm = facts.arm(key)
    return (arm.model if arm else key.removeprefix(PREFIX)) in facts.simulated


def _name(facts: Facts, key: str) -> str:
    """The model of a headline; of an arm, its model and whatever differs between the run's arms."""
    arm = facts.arm(key)
    if arm is None:
        return key.removeprefix(PREFIX)
    return " ".join([arm.model, *(_level(arm, name) for name in _varied(facts.arms))])


def _varied(arms: Sequence[ArmFactors]) -> list[str]:
    factors = ("selector", "budget", "prompt", "wording")
    return [name for name in factors if len({getattr(arm, name) for arm in arms}) > 1]


def _level(arm: ArmFactors, factor: str) -> str:
    return f"budget {arm.budget}" if factor == "budget" else str(getattr(arm, factor))


def _title(facts: Facts, scores: Mapping[str, Scores]) -> str:
    rows = [row for by_tier in scores.values() for row in by_tier.values()]
    patients = max(int(row["n_patients"]) for row in rows)
    of_headlines = any(facts.arm(key) is None for key in scores)
    over = "slice budget 16, standard prompt, mean over selections" if of_headlines else "of each arm"
    interval = f"no interval to rely on with fewer than {FEWEST_FOR_CLAIM}"
    if any(_has_interval(row) for row in rows):
        interval = "95 % intervals in brackets"
    return f"Scores in percent, {over}; {counted(patients, 'patient')}, {interval}:"


def _tiers(scores: Mapping[str, Scores]) -> list[str]:
    return [tier for tier in TIERS if any(tier in by_tier for by_tier in scores.values())]


def _table(scores: Mapping[str, Scores], width: int) -> Iterator[str]:
    """Lines of the table; a name stands above its scores where both do not fit into a line."""
    tiers = _tiers(scores)
    rows = {name: [_cell(by_tier.get(tier)) for tier in tiers] for name, by_tier in scores.items()}
    titles = [tier.replace(":", " ") for tier in tiers]
    widths = [max(map(len, column)) for column in zip(titles, *rows.values(), strict=True)]
    wide = max(map(len, ["model", *rows]))
    is_beside = wide + sum(len(_GAP) + column for column in widths) <= width
    label = wide if is_beside else 0

    def line(name: str, cells: Sequence[str]) -> str:
        padded = (f"{cell:<{column}}" for cell, column in zip(cells, widths, strict=True))
        return _GAP.join([f"{name:<{label}}", *padded]).rstrip()

    yield line("model" if is_beside else "", titles)
    for name, cells in rows.items():
        if not is_beside:
            yield from _filled(name, width)
        yield line(name if is_beside else "", cells)


def _cell(row: AnalysisRow | None) -> str:
    """A score with its interval, if that is one to rely on: the page's answers print no other."""
    if row is None or not _has_interval(row):
        return _value(row)
    return f"{_value(row)} [{row['low']:.0f}, {row['high']:.0f}]"


def _has_interval(row: AnalysisRow) -> bool:
    return not math.isnan(ends(row)["low"])


def _value(row: AnalysisRow | None) -> str:
    return "none" if row is None or math.isnan(row["value"]) else f"{row['value']:.1f}"


def _notes(scores: Mapping[str, Scores], width: int) -> list[str]:
    """What must be known of single scores: that replies could not be read, or are missing."""
    rows = [(name, tier, row) for name, by_tier in scores.items() for tier, row in by_tier.items()]
    unread = [
        f"{name} {percent} % on {tier.replace(':', ' ')}"
        for name, tier, row in rows
        if (percent := percent_read(row)) is not None
    ]
    incomplete = [
        f"{name} on {tier.replace(':', ' ')}" for name, tier, row in rows if row["percent_judged"] is not None
    ]
    lines = _filled(f"Replies that could be read: {', '.join(unread)}", width) if unread else []
    return lines + (_filled(f"Incomplete: {', '.join(incomplete)}", width) if incomplete else [])


def _filled(text: str, width: int, indent: int = 0) -> list[str]:
    """Lines of a text; a number is not parted from its percent sign."""
    whole = text.replace(" %", "\N{NO-BREAK SPACE}%")
    lines = textwrap.wrap(whole, width, initial_indent=" " * indent, subsequent_indent=" " * indent)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]
