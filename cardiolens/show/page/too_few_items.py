"""Why a tier has no score: no subtask has the `statistics.min_n` items that count in its mean."""

from cardiolens.score.statistics.rows import TIERS
from cardiolens.show.page.page_data import Facts

_SUBTASK = "subtask:"


def too_few_items(facts: Facts) -> str:
    """Name the tiers without a score, how many items a subtask needs and has; empty if all have scores."""
    rows = [row for row in facts.of_arms(["primary"], "tier:") if facts.arm(row["arm_id"]) is not None]
    asked = {row["scope"] for row in rows}
    scored = {row["scope"] for row in rows if row["n_items"]}
    unscored = [tier for tier in TIERS if tier in asked - scored]
    if not unscored:
        return ""
    tiers = {str(number) for number in (tier.partition(":")[2] for tier in unscored)}
    sizes = {
        row["scope"].removeprefix(_SUBTASK): row["n_items"]
        for row in facts.of_arms(["accuracy", "primary"], _SUBTASK)
        if _tier_of(facts, row["scope"].removeprefix(_SUBTASK)) in tiers | {""}
    }
    largest = max(sizes, key=lambda name: sizes[name], default="")
    has = f"; the largest, {largest}, has {sizes[largest]}" if largest else ""
    needed = facts.specs[0].statistics.min_n
    return (
        f"No score on {' and '.join(tier.replace(':', ' ') for tier in unscored)}: no subtask has "
        f"statistics.min_n={needed} items{has}. Ask more studies, or lower statistics.min_n."
    )


def _tier_of(facts: Facts, subtask: str) -> str:
    """The number of a subtask's tier; empty where the protocol is gone."""
    return str(facts.subtasks[subtask].tier) if subtask in facts.subtasks else ""
