from collections import Counter

import pytest

from cardiolens.base.errors import InputError
from cardiolens.config.dataset import PhantomSpec
from cardiolens.phantom import roster
from cardiolens.phantom.roster import answers, class_of, covered, is_public, study

SEED = 2026
# answers of a parent that open its conditional subtasks, and what else each of these needs (protocol 2)


@pytest.fixture(scope="module")
def large():
    return [study(SEED, study_id) for study_id in roster.roster(PhantomSpec(n_sampled=200))]


def test_every_option_of_every_subtask_occurs_three_times_in_200_studies(large):
    counts = Counter(choice for made in large for choice in answers(made.truth))
    rare = {choice: counts[choice] for choice in roster.all_choices() if counts[choice] < 3}
    assert rare == {}
    assert counts["C13", "B"] == 0


def test_coverage_replaces_studies_by_wanted_ones():
    ids = [f"PH-{number:04d}" for number in range(1, 121)]
    before = Counter(choice for study_id in ids for choice in answers(study(SEED, study_id).truth))
    after_ids = covered(SEED, ids)
    after = Counter(choice for study_id in after_ids for choice in answers(study(SEED, study_id).truth))
    assert min(before[choice] for choice in roster.all_choices()) < 3
    assert min(after[choice] for choice in roster.all_choices()) >= 3
    assert len(after_ids) == len(set(after_ids)) == 120
    wanted = sorted(set(after_ids) - set(ids))
    assert all(tuple(name.removeprefix("PH-")[:4]) for name in wanted)
    assert not any(is_public(SEED, int(name.removeprefix("PH-"))) for name in set(ids) - set(after_ids))


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
