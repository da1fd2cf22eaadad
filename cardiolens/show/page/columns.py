"""Cells that several tables of a page share, and the words in them."""

import math
from collections.abc import Collection, Mapping
from typing import Any

from cardiolens.base.phrasing import counted
from cardiolens.score.claims.descriptions import JOINT
from cardiolens.score.claims.sentences import SUBJECTS, sides
from cardiolens.score.statistics.bootstrap import FEWEST_FOR_CLAIM
from cardiolens.score.statistics.factors import ArmFactors
from cardiolens.score.statistics.scores import PREFIX
from cardiolens.score.statistics.statistic import Row
from cardiolens.show.page.elements import Reading
from cardiolens.show.page.page_data import Facts

READINGS: Mapping[Reading, str] = {
    "claimed": "difference claimed",
    "equivalent": "within 2 points",
    "open": "not claimed",
    "explored": "explored, not claimed",
}
ENDING_WORDS = {  # in the order of the bars
    "ok": "read",
    "asked_back": "read when asked back",
    "no_answer": "no answer when asked back",
    "inconsistent": "inconsistent",
    "contradicted": "contradicts itself",
    "parse_error": "not readable",
    "truncated": "cut off",
    "illegal_selection": "illegal selection",
    "refusal": "refused",
    "overflow": "too long for the model",
    "skipped": "skipped",
    "engine_error": "engine failed",
    "missing": "not run",
}
TIER_WORDS = {
    "tier:1": "Tier 1 · findings",
    "tier:2": "Tier 2 · reports",
    "tier:3": "Tier 3 · diagnosis",
}
_PARENT, _SUBTYPE = "D01", "D02"


def cells(facts: Facts, row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the run's tables with words in place of the ids of its arm, model, scope and comparison."""
    texts = dict(row)
    scope = str(row.get("scope") or (f"tier:{row['tier']}" if "tier" in row else ""))
    texts["scope"] = scope_words(scope)
    if scope.startswith("subtask:"):
        texts["subtask"] = subtask_words(facts, scope.removeprefix("subtask:"))
    texts["on"] = texts.get("subtask", texts["scope"])
    if arm := facts.arm(row.get("arm_id")):
        texts |= arm_cells(facts, arm)
    elif model := row.get("model") or model_of(row):
        texts["model"] = starred(model, facts)
    if "decision" in row:
        texts |= {"reading": READINGS[reading(texts)], "comparison": sides(texts)}
        texts["metric"] = SUBJECTS[row["metric"]]
    return texts


def of_arms(facts: Facts, metrics: Collection[str], *scopes: str) -> list[dict[str, Any]]:
    """Cells of the scores of single arms with one of these metrics, at scopes with these prefixes."""
    rows = (row for scope in scopes for row in facts.scores_of(metrics, scope))
    return [cells(facts, row) for row in rows if facts.arm(row["arm_id"])]


def of_analysis(facts: Facts, name: str) -> list[dict[str, Any]]:
    """Cells of an analysis in the order of the arms, tiers before subtasks, without arms that are gone."""
    rows = sorted(
        facts.analysis(name),
        key=lambda row: (facts.place(row.get("arm_id")), str(row.get("scope")).startswith("subtask:")),
    )
    return [texts for row in rows if "model" in (texts := cells(facts, row)) or not row.get("arm_id")]


def model_of(row: Mapping[str, Any]) -> str:
    """The model of a headline; empty for any other row."""
    arm_id = str(row.get("arm_id") or "")
    return arm_id.removeprefix(PREFIX) if arm_id.startswith(PREFIX) else ""


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


def starred(model: str, facts: Facts) -> str:
    """The name of a model; that of a simulated reader carries an asterisk."""
    return f"{model}*" if model in facts.simulated else model


def scope_words(scope: object) -> str:
    """Scope in the words of the page, e.g. Tier 1 · findings."""
    return TIER_WORDS.get(str(scope), str(scope).replace(":", " ").removeprefix("subtask "))


def arm_cells(facts: Facts, arm: ArmFactors) -> dict[str, object]:
    """Cells of an arm."""
    model = starred(arm.model, facts)
    label = f"{model} · {setting(arm)}"
    return {
        "model": model,
        "selector": arm.selector,
        "protocol": arm.protocol,
        "budget": arm.budget,
        "prompt": prompt_words(arm),
        "control": arm.control,
        "setting": setting(arm),
        **{"arm": label, "line": label},
    }


def prompt_words(arm: ArmFactors) -> str:
    """Name of a prompt, with its solved examples, and the wording where it is not the questions' own."""
    words = [
        arm.prompt,
        *([counted(arm.shots, "shot")] if arm.shots else []),
        *(["cine as video"] if arm.cine == "video" else []),
        *([f"wording {arm.wording}"] if arm.wording != "0" else []),
    ]
    return ", ".join(words)


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
