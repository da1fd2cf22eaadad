"""Numbers from question to score: readers of a known error have it, beside the constant reader."""

from dataclasses import replace

import numpy as np
import pytest
from made_verdicts import table, verdict
from page_run import write_record
from small_cohort import SEED, make_cohort, reader, sweep_spec, swept, values

from cardiolens.base.errors import InputError
from cardiolens.phantom.geometry import Heart
from cardiolens.phantom.phantom_cohort import quantity_findings
from cardiolens.phantom.roster import study
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.protocol.tasks.instantiate import records
from cardiolens.protocol.tasks.questions import write_questions
from cardiolens.score.run_results.run_comparison import compare_runs
from cardiolens.score.statistics.item_scores import ItemScores, open_scores
from cardiolens.score.statistics.statistic import Settings
from cardiolens.show.page.cards import cards
from cardiolens.show.page.page_data import read_facts
from cardiolens.show.page.page_rendering import render

N = 24
PHASES = 6
METRICS = ("absolute_error", "bias", "limit_low", "limit_high", "within_tolerance", "constant_error")


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = make_cohort(tmp_path_factory.mktemp("numbers"), N)
    tasks = load_catalogue("numbers-1")
    lines = []
    for number in range(1, N + 1):
        name = f"PH-{number:04d}"
        found = quantity_findings(Heart(study(SEED, name).parameters), tasks, PHASES)
        lines += records(name, tasks, found, sequences=["cine"], reports={})
    write_questions(root / "numbers.jsonl", lines)
    return root


def spec_of(root, *models, **changes):
    data = {"name": "small", "studies": root, "questions": root / "numbers.jsonl", "protocol": "numbers-1"}
    return sweep_spec(root, *models, dataset=data, outputs=root / "outputs", **changes)


@pytest.fixture(scope="module")
def judged(root):
    readers = [
        reader("oracle"),
        reader("measuring", "biased", bias=4.0),
        reader("measuring", "spread", spread=6.0),
        reader("constant", answer="57 %"),
        reader("uniform"),
    ]
    return swept(spec_of(root, *readers))


def scores_of(judged, name):
    planned, results = judged
    arm = next(arm.arm_id for arm in planned.arms if arm.model.name == name)
    return values(results, arm, METRICS)


def test_an_oracle_has_no_error_and_a_bias_is_found(judged):
    oracle, biased = scores_of(judged, "oracle"), scores_of(judged, "biased")
    for subtask in ("N01", "N02", "N03", "N04", "N05"):
        assert oracle["absolute_error", f"subtask:{subtask}"] == 0
        assert oracle["within_tolerance", f"subtask:{subtask}"] == 100
    assert biased["bias", "subtask:N01"] == pytest.approx(4.0)
    assert biased["limit_low", "subtask:N01"] == pytest.approx(4.0)
    assert biased["within_tolerance", "subtask:N01"] == 100
    assert biased["within_tolerance", "subtask:N05"] == 0  # four phases off, tolerance one


def test_a_spread_is_found_in_the_limits_of_agreement(judged):
    spread = scores_of(judged, "spread")
    width = spread["limit_high", "subtask:N02"] - spread["limit_low", "subtask:N02"]
    assert width == pytest.approx(2 * 1.96 * 6.0, rel=0.35)
    assert spread["absolute_error", "subtask:N02"] == pytest.approx(6.0 * np.sqrt(2 / np.pi), rel=0.4)


def test_unread_numbers_are_in_no_error_and_outside_the_tolerance(judged):
    constant, uniform = scores_of(judged, "constant"), scores_of(judged, "uniform")
    assert constant["absolute_error", "subtask:N01"] >= constant["constant_error", "subtask:N01"] > 0
    assert np.isnan(constant["absolute_error", "subtask:N02"])  # "57 %" is no volume
    assert constant["within_tolerance", "subtask:N02"] == 0
    assert np.isnan(uniform["absolute_error", "subtask:N01"])


def test_the_page_shows_numbers_and_says_nothing_of_scores_that_a_run_of_them_cannot_have(judged):
    planned, results = judged
    write_record(planned, results)
    facts = read_facts(planned.run, [planned.run])
    page = render(facts).index
    assert all(words in page for words in ("Limits of agreement", "N01 lv ejection fraction"))
    assert "of the constant reader" in page
    assert "none with an answer that was judged" not in page
    facts = replace(facts, arms=tuple(replace(arm, model=f"{arm.model} of somebody") for arm in facts.arms))
    (card,) = cards(facts)
    assert "numbers or rankings alone" in card.sentence


def test_two_runs_of_numbers_alone_cannot_be_compared(judged):
    """Before, a KeyError; and of runs without an item in common, that nothing is worse."""
    planned, results = judged
    write_record(planned, results)
    with pytest.raises(InputError, match="no item of a tier was judged there and in"):
        compare_runs(planned.run, planned.run)


def test_phases_are_asked_only_where_captions_name_them_without_their_moment(root):
    for caption in ("full", "none"):
        with pytest.raises(InputError, match=f"caption={caption}"):
            swept(spec_of(root, reader("oracle"), caption=caption, name=caption))


def open_verdict(patient, channel, counts, **row):
    return verdict(patient, "L01", "A", "A", channel=channel, answer_type=channel, counts=counts, **row)


def scores_of_rows(rows):
    of_items = ItemScores.of(Settings(1, 200, 1), sorted({row["patient_id"] for row in rows}))
    return {row["metric"]: row for row in open_scores("arm", table(rows), of_items)}


def test_recall_and_reciprocal_rank_of_known_places():
    places = [1, 2, 4, 8, None]
    counts = [[("place", place)] if place else [] for place in places]
    scores = scores_of_rows([open_verdict(f"P{at}", "ranking", of) for at, of in enumerate(counts)])
    assert [scores[f"recall_at_{most}"]["value"] for most in (1, 3, 5)] == [20, 40, 60]
    assert scores["reciprocal_rank"]["value"] == pytest.approx(100 * (1 + 1 / 2 + 1 / 4 + 1 / 8) / 5)


def test_items_of_a_patient_make_no_interval_narrower():
    draw = np.random.default_rng(1)
    errors = {f"P{at}": draw.normal(2.0, 3.0) for at in range(30)}
    counts = {name: [("truth", 50.0), ("tolerance", 5.0), ("error", error)] for name, error in errors.items()}
    few = [open_verdict(name, "number", of) for name, of in counts.items()]
    many = [row | {"qa_id": f"{row['qa_id']}:{copy}"} for row in few for copy in range(4)]
    one, four = (scores_of_rows(rows)["bias"] for rows in (few, many))
    assert (four["low"], four["high"]) == pytest.approx((one["low"], one["high"]))
    assert one["low"] < 2 < one["high"]
