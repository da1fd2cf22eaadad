"""Detectable differences of a cohort, computed before the run."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base.phrasing import counted
from cardiolens.score.statistics.factors import ArmFactors, headlines
from cardiolens.score.statistics.hypothesis_tests import (
    LARGEST,
    detectable_difference,
    difference_words,
    planned_error,
)
from cardiolens.score.statistics.pooled import COLLAPSE_KEYS, CONSERVATISM
from cardiolens.score.statistics.pooled_questions import collapse_questions, pooled_questions

ASSUMED = (
    "assumed: half of the answers right, answers of two arms to an item correlated by 0.3, differences of "
    "two items of a patient by 0.1"
)


def power_lines(questions: pa.Table, arms: Sequence[ArmFactors]) -> list[str]:
    """One line per tier: the difference of two arms detectable with 80 % power, alone and after Holm.

    `questions` are those of each arm. A tier score is a mean over subtasks; items are assumed to have
    equal weight, and reports count as items, so that tiers 2 and 3 are rougher than tier 1.
    """
    lines = []
    tiers = sorted(pc.unique(questions["tier"]).to_pylist())
    number = number_of_questions(arms, tiers)
    for tier in tiers:
        of_tier = questions.filter(pc.equal(questions["tier"], tier))
        patients = len(pc.unique(of_tier["patient_id"]))
        error = planned_error(patients, of_tier.num_rows / patients)
        basis = f"{counted(patients, 'patient')}, {counted(of_tier.num_rows, 'item')}"
        alone, among = (detectable_difference(error, tests) for tests in (1, number))
        line = f"tier {tier}: {basis} detect {difference_words(alone)} with 80 % power"
        if number > 1 and alone <= LARGEST:
            line += f", {difference_words(among)} among the {number} questions of this run"
        lines.append(line)
    return lines


def number_of_questions(arms: Sequence[ArmFactors], tiers: Sequence[int]) -> int:
    """Size of the family of pooled questions: each on every tier, for prompts also caution, and collapse."""
    scopes = [f"tier:{tier}" for tier in tiers]
    of_caution = sum(scope in scopes for _, scope in CONSERVATISM)
    number = sum(
        len(tiers) + of_caution * (question.factor == "prompt") for question in pooled_questions(arms)
    )
    simulated = {arm.arm_id for arm in arms if arm.simulated}
    if collapse_questions(headlines(arms), simulated):
        number += sum(scope in scopes for _, scope in COLLAPSE_KEYS)
    return number
