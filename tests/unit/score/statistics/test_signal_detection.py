"""Criterion, d' and severity of grades."""

from dataclasses import replace

import numpy as np
import pytest
from made_verdicts import of_arm, table, verdict

from bench.few_events import rejections
from cardiolens.score.statistics.arm_statistics import arm_statistics
from cardiolens.score.statistics.items import Answers, ArmAnswers, Items
from cardiolens.score.statistics.metrics import call_counts, of_calls, of_shifts, shift_counts
from cardiolens.score.statistics.pairs import compare_arms
from cardiolens.score.statistics.statistic import Resampling, Settings


def gate(gold: str, parsed: str) -> Items:
    """Items of L01, one a patient; `.` is a reply that was not read."""
    rows = [
        verdict(f"p{at:03d}", "L01", true, called.strip("."))
        for at, (true, called) in enumerate(zip(gold, parsed, strict=True))
    ]
    return Answers.of(table(rows)).items


def calls(items: Items) -> dict[str, float]:
    counts = np.stack(call_counts(items)).sum(axis=1).astype(float)
    return {name: float(value) for name, value in of_calls(counts).items()}


def test_a_reader_without_bias_has_criterion_0_and_its_own_d_prime() -> None:
    """Macmillan and Creelman's yes-no example: hits .8, false alarms .2, so d' is 1.683."""
    items = gate("A" * 500 + "B" * 500, "A" * 400 + "B" * 100 + "B" * 400 + "A" * 100)
    found = calls(items)
    assert found["criterion"] == pytest.approx(0, abs=1e-12)
    assert found["d_prime"] == pytest.approx(1.683, abs=0.01)


def test_caution_moves_the_criterion_and_leaves_d_prime() -> None:
    """Rates of z values -1.5 and -0.5 against -0.5 and 0.5: the same d', a criterion one higher."""
    rates = (0.0668, 0.3085), (0.3085, 0.6915)
    number = 10_000
    cautious, bold = (
        calls_of(number, round(false_alarms * number), number, round(hits * number))
        for false_alarms, hits in rates
    )
    assert cautious["criterion"] - bold["criterion"] == pytest.approx(1, abs=0.01)
    assert cautious["d_prime"] == pytest.approx(bold["d_prime"], abs=0.01)


def calls_of(*counts: float) -> dict[str, float]:
    return {name: float(value) for name, value in of_calls(np.array(counts, np.float64)).items()}


def test_rates_of_0_and_1_are_finite_and_a_missing_class_is_undefined() -> None:
    perfect = calls(gate("AAABBB", "AAABBB"))
    assert np.isfinite(perfect["d_prime"])
    assert perfect["criterion"] == 0
    assert np.isnan(calls(gate("AAAA", "AABB"))["criterion"])


def test_replies_not_read_are_no_calls() -> None:
    assert calls(gate("AABB", "A.B.")) == calls(gate("AB", "AB"))


@pytest.mark.parametrize(("parsed", "shift"), [("AC", 0.5), ("AA", -0.5), ("AB", 0.0), (".C", 1.0)])
def test_grades_too_severe_are_above_0(parsed: str, shift: float) -> None:
    items = gate("AB", parsed)
    ordinal = replace(items, answer_type=np.full(len(items), "ordinal"))
    counts = np.stack(shift_counts(ordinal)).sum(axis=1)
    assert float(of_shifts(counts)["severity_shift"]) == shift


def test_prompts_that_do_nothing_hardly_ever_change_the_criterion() -> None:
    """Of 40 patients read nearly without error, a plain bootstrap called 11 % of such changes real."""
    plain, product, plain_d_prime, product_d_prime = rejections((40, 20, 0.97, 0.03, 4, 3), 100)
    assert product <= 7 < plain
    assert product_d_prime <= 7
    assert plain_d_prime >= product_d_prime


def test_a_tier_knows_how_few_answers_its_criterion_rests_on() -> None:
    items = gate("AB" * 20, "AB" * 19 + "AA")
    rows = Answers(items, Answers.of(table([])).reports)
    statistics = arm_statistics(rows, Resampling.of(Settings(1, 20, 1), 40))
    assert statistics["criterion", "tier:1"].basis.n_effective < 4
    assert statistics["primary", "tier:1"].basis.n_effective > 30


def test_a_difference_knows_as_little_as_the_side_with_fewer_errors() -> None:
    """Before, it had the degrees of freedom of its first side, and another interval if it was turned."""
    many, few = "AABBAABB" * 5, "AABBAABB" * 4 + "ABBBAAAB"
    golds = "AABB" * 10
    rows = [
        of_arm(
            arm, f"p{at:03d}", "L01", true, "AB"[called == "A"] if arm == "many" and at % 3 == 0 else called
        )
        for arm, answers in (("many", many), ("few", few))
        for at, (true, called) in enumerate(zip(golds, answers, strict=True))
    ]
    answers = ArmAnswers.of(table(rows))
    sampling = Resampling.of(Settings(1, 200, 1, swaps=20), 40)
    statistics = {arm: arm_statistics(answers.judged(arm), sampling) for arm in answers.arms}
    ends = []
    for pair in (("many", "few"), ("few", "many")):
        ((*_, row),) = compare_arms(answers, statistics, sampling, pair, ("criterion",))
        ends.append((row["low"], row["high"]))
    assert ends[0] == pytest.approx((-ends[1][1], -ends[1][0]))
