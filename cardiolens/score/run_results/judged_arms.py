"""Factors of the arms of a sweep, and the arms that can be compared."""

from collections.abc import Collection, Sequence

from cardiolens.config.arms import Arm
from cardiolens.score.statistics.factors import ArmFactors


def judged_arms(sweep_arms: Sequence[Arm], judged_ids: Collection[str]) -> list[ArmFactors]:
    """Factors of the arms that have a judged item, and so can be compared."""
    with_verdicts = set(judged_ids)
    return [arm for arm in arm_factors(sweep_arms) if arm.arm_id in with_verdicts]


def arm_factors(sweep_arms: Sequence[Arm]) -> list[ArmFactors]:
    """Factors of every arm of a sweep."""
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
            shots=arm.prompt.shots,
            cine=arm.prompt.cine,
        )
        for arm in sweep_arms
    ]
