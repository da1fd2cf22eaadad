"""What reports written without looking score (protocol 8.3)."""

from itertools import combinations, product

import numpy as np
import pytest

from cardiolens.protocol.tasks.catalogue import Option, Subtask
from cardiolens.score.statistics.references import best_constant_report, option_flags, report_guess_scores


def field(name: str, answer_type: str, texts: str, **changes: object) -> Subtask:
    options = tuple(Option(key, text) for key, text in zip("ABCD", texts, strict=False))
    given = {"id": name, "tier": 1, "sequence": "lge", "field": name.lower(), "question": "?"}
    given |= {"answer_type": answer_type, "route": (("lge_sax", 1),), "provenance": "test"}
    return Subtask(**(given | {"options": options} | changes))  # type: ignore[arg-type]


GATE = field("GATE", "single", "no")
LEVELS = field("LEVELS", "multi", "xyz", parent="GATE", parent_answers=("B",))
FORM = {"gate": GATE, "levels": LEVELS}


def test_entities_take_their_places_among_the_options() -> None:
    flags = np.array([[True, False, True], [False, True, False]])
    found = option_flags(FORM, ("levels: y", "gate: n", "levels: of another form"), flags)
    assert found.tolist() == [[False, False, False, True, False], [True, False, False, False, False]]


def test_the_best_constant_report_is_the_best_of_all_that_may_be_written() -> None:
    dice = np.random.default_rng(4)
    for _ in range(20):
        gold = dice.random((9, 5)) < dice.random(5)
        found = best_constant_report(FORM, gold.sum(0) * 1.0, np.array(9.0), np.array(gold.sum() + 2.0))
        every = []
        for gate, size in product(((), (0,), (1,)), range(4)):
            for levels in combinations((2, 3, 4), size):
                chosen = [*gate, *levels]
                every.append(2 * gold[:, chosen].sum() / (9 * len(chosen) + gold.sum() + 2))
        assert found == pytest.approx(max(every))


def test_guessed_reports_approach_their_expectations() -> None:
    """Half of 400 studies: gate n; the others gate o with level x."""
    gold = np.array([[True, False, False, False, False], [False, True, True, False, False]] * 200)
    right = float(gold.sum())
    found = report_guess_scores("R", FORM, gold, right, 2026)
    # a copy is right in all or in nothing; of two kinds one half is alike
    assert found["prevalence"] == pytest.approx(0.5, abs=0.01)
    # gate: 1/2 right of 1; where it opens (1/2) 12/7 levels of 3, each of 4/7: right in half of the studies
    said = 1 + 0.5 * 12 / 7
    hits = 0.5 + 0.5 * 0.5 * 4 / 7
    assert found["uniform"] == pytest.approx(2 * hits / (said + right / 400), abs=0.01)


def test_guesses_repeat_and_differ_by_seed() -> None:
    gold = np.array([[True, False, False, False, False], [False, True, True, False, True]] * 9)
    first = report_guess_scores("R", FORM, gold, 45.0, 1)
    assert report_guess_scores("R", FORM, gold.copy(), 45.0, 1) == first
    assert report_guess_scores("R", FORM, gold, 45.0, 2) != first
