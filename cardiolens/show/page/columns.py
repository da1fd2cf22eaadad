"""Columns and cells that several tables of a page share."""

import math
from collections.abc import Mapping
from typing import Any

from cardiolens.base.phrasing import counted
from cardiolens.score.claims.confusion import JOINT
from cardiolens.score.statistics.bootstrap import FEWEST_FOR_CLAIM
from cardiolens.score.statistics.factors import ArmFactors
from cardiolens.score.statistics.statistic import Row
from cardiolens.show.page.elements import Column, Reading
from cardiolens.show.page.page_data import Facts

ARM = (
    Column("model", "model"),
    Column("selector", "selection"),
    Column("budget", "slice budget"),
    Column("prompt", "prompt"),
    Column("control", "control"),
)
SCOPE = Column("scope", "on")
VALUE = Column("value", "value", "score")
LOW, HIGH = Column("low", "95 % CI from", "score"), Column("high", "to", "score")
COUNTS = (Column("n_items", "items", "count"), Column("n_patients", "patients", "count"))
ENDINGS = (
    Column("n_parse_error", "not readable", "count"),
    Column("n_refusal", "refused", "count"),
)
METHOD = Column("method", "how")
ESTIMATE = (  # a difference with both intervals, what is decided, and its test
    *(Column("difference", "difference", "points"), Column("low", LOW.title, "points")),
    *(Column("high", HIGH.title, "points"), Column("low_90", "90 % CI from", "points")),
    *(Column("high_90", "to", "points"), Column("reading", "reading")),
    *(Column("p_adjusted", "adjusted p", "p"), Column("family_size", "of tests", "count")),
)
READINGS: Mapping[Reading, str] = {
    "claimed": "difference claimed",
    "equivalent": "within 2 points",
    "open": "not claimed",
    "explored": "explored, not claimed",
}

_TIERS = {
    "tier:1": "Tier 1 · findings",
    "tier:2": "Tier 2 · reports",
    "tier:3": "Tier 3 · diagnosis",
}


def ends(row: Mapping[str, Any]) -> dict[str, float]:
    """The ends of a score's interval; NaN where its patients are too few to rely on it."""
    if row["n_patients"] < FEWEST_FOR_CLAIM:
        return {"low": math.nan, "high": math.nan}
    return {"low": row["low"], "high": row["high"]}


def score_words(row: Mapping[str, Any]) -> str:
    """A score in percent with its interval, if that is one to rely on."""
    interval = ends(row)
    if math.isnan(interval["low"]):
        return f"{row['value']:.1f} % (no interval to rely on)"
    return f"{row['value']:.1f} % (95 % CI {interval['low']:.1f} to {interval['high']:.1f})"


def caveats(row: Mapping[str, Any]) -> list[str]:
    """What makes a score say less than it seems to: fewer items than asked, too few patients."""
    words = []
    if row["percent_judged"] is not None:  # floored, so that 98.96 % is not printed as complete
        words.append(f"incomplete, {int(10 * row['percent_judged']) / 10} % of items judged")
    if row["n_patients"] < FEWEST_FOR_CLAIM and not math.isnan(row["value"]):
        words.append(f"n too small for an interval: {row['n_patients']}")
    return words


def reading(row: Row) -> Reading:
    """The conclusion that a comparison allows: a difference, equivalence, or neither."""
    if row["adjustment"] == "fdr":
        return "explored"
    if row["decision"] in ("higher", "lower"):
        return "claimed"
    return "equivalent" if row["margin"] == "within" else "open"


def estimate_cells(row: Row) -> dict[str, object]:
    """Cells of a comparison that differ from its columns."""
    return {"reading": READINGS[reading(row)]}


def starred(model: str, facts: Facts) -> str:
    """The name of a model; that of a simulated reader carries an asterisk."""
    return f"{model}*" if model in facts.simulated else model


def scope_words(scope: object) -> str:
    """Scope in the words of the page, e.g. Tier 1 · findings."""
    return _TIERS.get(str(scope), str(scope).replace(":", " ").removeprefix("subtask "))


def arm_cells(arm: ArmFactors, simulated: frozenset[str]) -> dict[str, object]:
    """Cells of an arm; the name of a simulated reader carries an asterisk."""
    star = "*" if arm.model in simulated else ""
    return {
        "model": f"{arm.model}{star}",
        "selector": arm.selector,
        "protocol": arm.protocol,
        "budget": arm.budget,
        "prompt": prompt_words(arm),
        "control": arm.control,
        "arm": f"{arm.model}{star} · {setting(arm)}",
    }


def prompt_words(arm: ArmFactors) -> str:
    """Name of a prompt, with its solved examples, and the wording where it is not the questions' own."""
    words = [
        arm.prompt,
        *([shots_words(arm.shots)] if arm.shots else []),
        *(["cine as video"] if arm.cine == "video" else []),
        *([f"wording {arm.wording}"] if arm.wording != "0" else []),
    ]
    return ", ".join(words)


def shots_words(shots: int) -> str:
    """How many solved examples stand before a question, e.g. 2 shots."""
    return counted(shots, "shot")


def setting(arm: ArmFactors, *without: str) -> str:
    """Arm in a few words without its model and the factors named, e.g. clinical · budget 16 · standard."""
    words = {
        "selector": arm.selector,
        "budget": f"budget {arm.budget}",
        "prompt": arm.prompt,
        "control": "" if arm.control == "none" else arm.control,
        "wording": "" if arm.wording == "0" else f"wording {arm.wording}",
    }
    return " · ".join(word for name, word in words.items() if word and name not in without)


def row_cells(row: Mapping[str, Any]) -> dict[str, object]:
    """Cells of a row of scores, with its scope in words."""
    return {**row, "scope": scope_words(row["scope"])}


_PARENT, _SUBTYPE = "D01", "D02"


def subtask_words(facts: Facts, subtask: str) -> str:
    """Subtask with the name of its field, e.g. C10 wall motion."""
    if subtask == JOINT:
        return f"{JOINT} diagnosis"
    entry = facts.subtasks.get(subtask)
    return f"{subtask} {entry.field.replace('_', ' ')}" if entry else subtask


def answer_words(facts: Facts, subtask: str, keys: str) -> str:
    """Answer with its text, e.g. A Normal; of a joined diagnosis the subtype's key and text."""
    if subtask == JOINT:
        subtask, keys = (_SUBTYPE, keys[1:]) if len(keys) == 2 else (_PARENT, keys)
        return answer_words(facts, subtask, keys)
    entry = facts.subtasks.get(subtask)
    texts = [option.text for option in entry.options if option.key == keys] if entry else []
    return f"{keys} {texts[0]}" if texts else keys
