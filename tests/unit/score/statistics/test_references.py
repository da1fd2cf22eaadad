"""The best constant answer and skill beyond it (protocol 8.3)."""

from itertools import combinations, product

import numpy as np
import pytest

from cardiolens.protocol.tasks.catalogue import Option, Subtask
from cardiolens.score.statistics.counting import (
    Part,
    best_constant,
    best_constant_report,
    option_flags,
    skill,
)
from cardiolens.score.statistics.items import Floats


def constants(kind: str, gold: list[str], size: int) -> dict[str, float]:
    flags: Floats = np.array([[key in answer for answer in gold] for key in "ABCDE"[:size]], float)
    part = Part("X01", "lge", 1, kind, tuple(range(size)), 1)  # type: ignore[arg-type]
    best = best_constant(part, flags.sum(axis=1, keepdims=True), np.array([float(len(gold))]))
    return {name: float(value[0]) for name, value in best.items()}


def test_the_best_constant_of_a_choice_is_the_mode() -> None:
    gold = ["A"] * 10 + ["B"] * 20 + ["C"] * 70
    assert constants("choice", gold, 3) == {"primary": pytest.approx(0.7)}
    assert constants("diagnosis", gold, 3)["macro_f1"] == pytest.approx(0.27451, abs=1e-4)


def test_the_best_constant_set_is_the_best_of_all_sets() -> None:
    dice = np.random.default_rng(5)
    for _ in range(20):
        gold = ["".join(key for key in "ABCD" if dice.random() < share) or "A" for share in dice.random(9)]
        every = [
            2 * sum(len({*answer} & {*chosen}) for answer in gold) / (size * len(gold) + sum(map(len, gold)))
            for size in (1, 2, 3, 4)
            for chosen in combinations("ABCD", size)
        ]
        assert constants("set", gold, 4)["primary"] == pytest.approx(max(every))


def test_skill_is_zero_at_the_reference_and_one_at_the_top() -> None:
    score: Floats = np.array([0.7, 1.0, 0.4])
    assert skill(score, np.array(0.7)) == pytest.approx([0, 1, -1])
    assert np.isnan(skill(np.array([1.0]), np.array([1.0])))


def field(name: str, answer_type: str, texts: str) -> Subtask:
    options = tuple(Option(key, text) for key, text in zip("ABCD", texts, strict=False))
    given = {"id": name, "tier": 1, "sequence": "lge", "field": name.lower(), "question": "?"}
    given |= {"answer_type": answer_type, "route": (("lge_sax", 1),), "provenance": "test"}
    return Subtask(**(given | {"options": options}))  # type: ignore[arg-type]


FORM = {"gate": field("GATE", "single", "no"), "levels": field("LEVELS", "multi", "xyz")}


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
