"""Drawings of the first screen: labelled rows, the largest of many, single models under a mean."""

from pathlib import Path

import pytest
from page_run import finished, small_spec
from small_cohort import make_cohort

from cardiolens.show.page.elements import Card, Estimate
from cardiolens.show.page.page_data import Header, read_facts
from cardiolens.show.page.page_rendering import WIDTH, strip, templates
from cardiolens.show.page.sections.answer_sections import collapse


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


def test_of_many_estimates_the_largest_are_drawn_and_the_rest_is_counted() -> None:
    estimates = [Estimate(str(number), number / 10, -1, 9) for number in range(40)]
    drawn = strip(Card("x", "?", "", "", tuple(estimates)))
    assert drawn is not None
    assert [row.label for row in drawn.rows] == [
        *map(str, range(28, 40)),
        "and 28 smaller, in the table below",
    ]


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
