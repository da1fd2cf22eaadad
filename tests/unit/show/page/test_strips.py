"""Drawings of the first screen: labelled rows, bins where rows are too many, single models under a mean."""

from pathlib import Path

import pytest
from page_run import finished, small_spec
from small_cohort import make_cohort

from cardiolens.show.page.elements import Card, Estimate
from cardiolens.show.page.interval_drawings import WIDTH, strip
from cardiolens.show.page.page_data import Header, read_facts
from cardiolens.show.page.page_rendering import templates
from cardiolens.show.page.sections.collapse_section import collapse


def card(answer: Card) -> str:
    module = templates().get_template("parts.html").module
    return str(module.answer_card(answer, strip(answer), WIDTH))  # type: ignore[attr-defined]


def test_few_estimates_have_a_row_with_a_label_each() -> None:
    estimates = tuple(Estimate(f"tier {number}", number, number - 1, number + 1) for number in range(1, 4))
    drawn = strip(Card("x", "?", "", "", estimates))
    assert drawn is not None
    assert [row.label for row in drawn.rows] == ["tier 1", "tier 2", "tier 3"]
    text = card(Card("x", "?", "", "", estimates))
    assert all(f'<span class="name">{row.label}</span>' in text for row in drawn.rows)


def test_hundreds_of_estimates_are_counted_by_reading_and_none_is_lost() -> None:
    shown = [Estimate("a", 4.0 + number % 3, 1, 9, "claimed") for number in range(64)]
    still_open = [Estimate("b", number / 100 - 4, -30, 30, "open") for number in range(800)]
    drawn = strip(Card("x", "?", "", "", (*shown, *still_open)))
    assert drawn is not None
    assert [(row.label, row.tone) for row in drawn.rows] == [
        ("difference claimed: 64 of 864", "claimed"),
        ("not claimed: 800 of 864", "open"),
    ]
    assert drawn.ends == ("−10", "0", "+10 points")  # of the values, not of the widest interval
    for row in drawn.rows:
        assert max(bar.share for bar in row.bars) == 1
        assert all(0 <= bar.start <= WIDTH - bar.width for bar in row.bars)
    assert len(drawn.rows[0].bars) == 3
    assert card(Card("x", "?", "", "", (*shown, *still_open))).count('class="bar"') == sum(
        len(row.bars) for row in drawn.rows
    )


def test_an_estimate_at_the_end_of_the_scale_is_in_the_last_bin() -> None:
    drawn = strip(Card("x", "?", "", "", tuple(Estimate("a", value, value, value) for value in [5.0] * 20)))
    assert drawn is not None
    (bar,) = drawn.rows[0].bars
    assert bar.start + bar.width == WIDTH


def test_models_stand_under_the_mean_within_the_scale() -> None:
    drawn = strip(Card("x", "?", "", "", (Estimate("all", 1.0, 0.0, 2.0, models=(-12.0, 3.0)),)))
    assert drawn is not None
    assert drawn.ends[2] == "+15 points"
    assert drawn.rows[0].models == (20.0, 120.0)


def test_a_criterion_has_its_own_unit_and_no_band_of_points() -> None:
    answer = Card("x", "?", "", "", (Estimate("all", 0.1, -0.2, 0.7),), unit="z", has_band=False)
    drawn = strip(answer)
    assert drawn is not None
    assert (drawn.ends, drawn.band) == (("−1", "0", "+1 z"), None)
    assert 'class="band"' not in card(answer)


def test_charts_open_on_a_model_that_sees_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = {"min_n": 1, "resamples": 10, "seed": 7}
    spec = small_spec(make_cohort(tmp_path, 1), "order", subtask=["D01"], statistics=few)
    run = finished(spec)
    for simulated in ("noisy", "collapse"):
        monkeypatch.setattr(Header, "simulated", property(lambda _, name=simulated: frozenset({name})))
        facts = read_facts(run, [run])
        real = "collapse" if simulated == "noisy" else "noisy"
        assert [(arm.model, arm.control) for arm in facts.arms] == [
            *((real, "none"), (real, "blind"), (simulated, "none"), (simulated, "blind"))
        ]
        for figure in collapse(facts).figures:
            place = [column.name for column in figure.table.columns].index("arm")
            assert figure.table.rows[0][place].startswith(f"{real} ")
            assert "blind" not in figure.table.rows[0][place]
