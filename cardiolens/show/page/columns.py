"""Columns and cells that several tables of a page share."""

import math
from collections.abc import Mapping
from typing import Any

from cardiolens.base.phrasing import counted
from cardiolens.score.claims.confusion import JOINT
from cardiolens.score.claims.evidence_analysis import interval_of
from cardiolens.score.statistics.enough_data import FEWEST_FOR_CLAIM
from cardiolens.score.statistics.factors import ArmFactors
from cardiolens.score.statistics.outcomes import INCOMPLETE
from cardiolens.show.page.elements import Column
from cardiolens.show.page.page_data import Facts

ARM = (
    Column("model", "model"),
    Column("selector", "selection"),
    Column("budget", "K"),
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

_TIERS = {
    "tier:1": "Tier 1 · findings",
    "tier:2": "Tier 2 · reports",
    "tier:3": "Tier 3 · diagnosis",
}


def ends(row: Mapping[str, Any]) -> dict[str, float]:
    """The ends of a score's interval; NaN where its patients are too few to rely on it (`too_few`)."""
    interval = interval_of(row)
    return {"low": interval.low, "high": interval.high}


def too_few(row: Mapping[str, Any]) -> str:
    """A note that patients are too few for an interval, with their number; empty if they are enough."""
    few = row["n_patients"] < FEWEST_FOR_CLAIM and not math.isnan(row["value"])
    return f"n too small for an interval: {row['n_patients']}" if few else ""


def caveats(row: Mapping[str, Any]) -> tuple[str, ...]:
    """What makes a score say less than it seems to: fewer items than asked, too few patients."""
    method = str(row["method"])
    incomplete = method.partition(";")[0] if method.startswith(INCOMPLETE) else ""
    return tuple(filter(None, (incomplete, too_few(row))))


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
    """Arm in a few words without its model and the factors named, e.g. clinical · K = 16 · standard."""
    words = {
        "selector": arm.selector,
        "budget": f"K = {arm.budget}",
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
