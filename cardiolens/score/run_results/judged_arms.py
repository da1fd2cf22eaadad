"""The arms of a sweep by what was varied, and those of them that can be compared."""

from collections.abc import Collection, Sequence

from cardiolens.config.arms import Arm
from cardiolens.score.statistics.factors import ArmFactors


def judged_arms(asked: Sequence[Arm], judged: Collection[str]) -> list[ArmFactors]:
    """The arms that can be compared: those with a judged item."""
    having = set(judged)
    return [arm for arm in varied(asked) if arm.arm_id in having]


def varied(asked: Sequence[Arm]) -> list[ArmFactors]:
    """Arms by what was varied."""
    return [
        ArmFactors(
            arm_id=arm.arm_id,
            model=arm.model.name,
            selector=arm.selector_name,
            budget=str(arm.budget),
            prompt=arm.prompt.name,
            control=arm.control,
            wording=str(arm.wording),
            simulated=arm.model.simulated,
        )
        for arm in asked
    ]
