from collections import Counter

import pytest

from cardiolens.base.errors import InputError
from cardiolens.config.dataset import PhantomSpec
from cardiolens.phantom import roster
from cardiolens.phantom.roster import SEQUENCES, answers, catalogue, covered, study
from cardiolens.phantom.sub_cohort import class_of, is_public
from cardiolens.protocol.tasks.instantiate import answerable_subtasks
from cardiolens.protocol.tasks.truth import findings

SEED = 2026
# answers of a parent that open its conditional subtasks, and what else each of these needs (protocol 2)
OPENED = {
    "C02": ("BCD", {"C03": None, "C04": "wall_segments", "C05": None}),
    "C06": ("BCD", {"C07": None, "C08": "moving_segments", "C09": None}),
    "L01": ("B", {"L02": "lv_lesion", "L03": "wall_or_rv_lesion", "L04": None, "L05": "lv_lesion_layer"}),
    "P01": ("B", {"P02": "defect_segments", "P03": "defect_segments", "P04": None}),
    "T01": ("B", {"T02": None, "T03": "oedema_segments", "T04": None}),
}


@pytest.fixture(scope="module")
def large():
    return [study(SEED, study_id) for study_id in roster.roster(PhantomSpec(n_sampled=200))]


def test_every_option_of_every_subtask_occurs_three_times_in_200_studies(large):
    counts = Counter(choice for made in large for choice in answers(made.truth))
    rare = {choice: counts[choice] for choice in roster.all_choices() if counts[choice] < 3}
    assert rare == {}
    assert counts["C13", "B"] == 0


def test_the_number_of_conditional_questions_equals_the_truth(large):
    for made in large:
        assert conditional(made) == expected(made.truth), made.study_id


def conditional(made):
    every = answerable_subtasks(catalogue(), findings(made.truth), SEQUENCES)
    return {subtask.id for subtask in every if subtask.tier == 1 and subtask.parent}


def expected(truth):
    """Conditional subtasks read straight from the truth record."""
    inside = range(16)
    lesions = truth.lge
    holds = {
        None: True,
        "wall_segments": any(truth.segments[n].abnormal_wall for n in inside),
        "moving_segments": any(truth.segments[n].motion != "normal" for n in inside),
        "lv_lesion": any(lesion.segments or lesion.papillary for lesion in lesions),
        "lv_lesion_layer": any(lesion.layer for lesion in lesions),
        "wall_or_rv_lesion": any(set(lesion.segments) - {17} or lesion.rv_free_wall for lesion in lesions),
        "defect_segments": bool(truth.perfusion and set(truth.perfusion.segments) - {17}),
        "oedema_segments": any(set(lesion.segments) - {17} for lesion in truth.oedema),
    }
    positive = {
        "C02": any(segment.abnormal_wall for segment in truth.segments),
        "C06": any(segment.motion != "normal" for segment in truth.segments),
        "L01": bool(lesions),
        "P01": truth.perfusion is not None,
        "T01": bool(truth.oedema),
    }
    return {
        child
        for parent, (_, children) in OPENED.items()
        if positive[parent]
        for child, needed in children.items()
        if holds[needed]
    }


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


def test_a_cohort_too_small_to_cover_says_so():
    with pytest.raises(InputError, match="are too few to cover every option; raise n_sampled"):
        covered(SEED, ["PH-0001", "PH-0002"])


def test_a_wanted_study_has_the_answer_it_is_named_after():
    assert ("C17", "D") in set(answers(study(SEED, "PH-C17D-1").truth))
    with pytest.raises(InputError, match="no phantom can have option Z of C17 as its answer"):
        study(SEED, "PH-C17Z-1")


def test_a_study_is_a_function_of_seed_and_id():
    assert study(SEED, "PH-0007") == study(SEED, "PH-0007")
    assert study(SEED, "PH-0007").parameters != study(SEED + 1, "PH-0007").parameters
    assert study(SEED, "PH-0007").parameters != study(SEED, "PH-0020").parameters


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


def test_the_public_sub_cohort_of_the_large_cohort_is_stratified():
    public = [number for number in range(1, 671) if is_public(SEED, number)]
    assert len(public) == 135
    everyone = Counter(class_of(SEED, number)[0] for number in range(1, 671))
    chosen = Counter(class_of(SEED, number)[0] for number in public)
    assert all(abs(chosen[kind] - count * 135 / 670) <= 3 for kind, count in everyone.items())
    assert [number for number in range(1, 201) if is_public(SEED, number)] == [n for n in public if n <= 200]


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
