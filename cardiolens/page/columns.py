"""Columns and cells that several tables of a page share."""

from collections.abc import Mapping
from typing import Any

from cardiolens.findings.confusion import JOINT
from cardiolens.page.elements import Column
from cardiolens.page.facts import Facts
from cardiolens.stats.factors import ArmFactors

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


def scope_words(scope: object) -> str:
    """A scope as a reader of the page sees it."""
    return _TIERS.get(str(scope), str(scope).replace(":", " ").removeprefix("subtask "))


def arm_cells(arm: ArmFactors, simulated: frozenset[str]) -> dict[str, object]:
    """An arm as cells; simulated readers carry an asterisk."""
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
    """A prompt, with the wording of the questions where it is not their own."""
    return arm.prompt if arm.wording == "0" else f"{arm.prompt}, wording {arm.wording}"


def setting(arm: ArmFactors, *without: str) -> str:
    """An arm in a few words, less its model and what is given: clinical · K = 16 · standard."""
    words = {
        "selector": arm.selector,
        "budget": f"K = {arm.budget}",
        "prompt": arm.prompt,
        "control": "" if arm.control == "none" else arm.control,
        "wording": "" if arm.wording == "0" else f"wording {arm.wording}",
    }
    return " · ".join(word for name, word in words.items() if word and name not in without)


def row_cells(row: Mapping[str, Any]) -> dict[str, object]:
    """The cells of a row of scores, its scope in words."""
    return {**row, "scope": scope_words(row["scope"])}


_PARENT, _SUBTYPE = "D01", "D02"


def subtask_words(facts: Facts, subtask: str) -> str:
    """A subtask with what it asks for, e.g. C10 wall motion."""
    if subtask == JOINT:
        return f"{JOINT} diagnosis"
    known = facts.subtasks.get(subtask)
    return f"{subtask} {known.field.replace('_', ' ')}" if known else subtask


def answer_words(facts: Facts, subtask: str, keys: str) -> str:
    """An answer with its text, e.g. A Normal; of joined diagnoses the subtype's."""
    if subtask == JOINT:
        subtask, keys = (_SUBTYPE, keys[1:]) if len(keys) == 2 else (_PARENT, keys)
        return answer_words(facts, subtask, keys)
    known = facts.subtasks.get(subtask)
    texts = [option.text for option in known.options if option.key == keys] if known else []
    return f"{keys} {texts[0]}" if texts else keys
