from collections import Counter

import pytest

from cardiolens.base.errors import InputError
from cardiolens.config.dataset import PhantomSpec
from cardiolens.phantom import roster
from cardiolens.phantom.roster import SEQUENCES, catalogue, class_of, study
from cardiolens.protocol.tasks.instantiate import answer, answerable_subtasks
from cardiolens.protocol.tasks.truth import findings

SEED = 2026


@pytest.fixture(scope="module")
def large():
    return [study(SEED, study_id) for study_id in roster.roster(PhantomSpec(n_sampled=200))]


def test_every_option_of_every_subtask_occurs_three_times_in_200_studies(large):
    counts = Counter()
    for made in large:
        known = findings(made.truth)
        for subtask in answerable_subtasks(catalogue(), known, SEQUENCES):
            counts.update((subtask.id, key) for key in answer(subtask, known))
    tier_1 = [one for one in catalogue().subtasks.values() if one.tier == 1]
    every = {(one.id, key) for one in tier_1 for key in one.keys}
    assert {choice for choice in every if counts[choice] < 3} == {("C13", "B")}  # thinner than a pixel


def test_classes_come_in_the_shares_of_the_specification_in_every_prefix():
    shares = {
        "normal": 0.15,
        "icm": 0.25,
        "hcm": 0.27,
        "dcm": 0.15,
        "inflammatory": 0.06,
        "restrictive": 0.06,
        "acm": 0.06,
    }
    for count in (20, 200, 670):
        found = Counter(class_of(SEED, number)[0] for number in range(1, count + 1))
        assert all(abs(found[kind] - share * count) <= 3 for kind, share in shares.items()), (count, found)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (PhantomSpec(), "a phantom cohort of 0 studies"),
        (PhantomSpec(canonical=("PH-NOPE",)), r"name each once, of PH-NORMAL, PH-HCM-ASH"),
        (PhantomSpec(canonical=("PH-NORMAL", "PH-NORMAL")), "name each once"),
    ],
)
def test_cohorts_that_cannot_be(spec, message):
    with pytest.raises(InputError, match=message):
        roster.roster(spec)
