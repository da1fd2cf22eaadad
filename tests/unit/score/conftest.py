"""A run whose second prompt is better, scored once for the tests of claims and of pooled questions."""

import numpy as np
import pytest

from bench.claims import arms_of, compared, verdicts
from cardiolens.score.statistics.statistic import Row


@pytest.fixture(scope="session")
def better_prompt() -> list[Row]:
    """The comparisons of three models at two selections, two budgets and two prompts."""
    arms = arms_of(("clinical", "random@1"), ("8", "16"), ("standard", "reasoning"), ("a", "b", "c"))
    return compared(arms, verdicts(arms, 60, np.random.default_rng([11, 1]), better=0.4), 200, 200)[1]
