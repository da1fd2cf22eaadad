"""The worked values of protocol 8.1 from additive cells, and the best constant answer (8.3)."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardiolens.protocol.tasks.catalogue import Option, Subtask
from cardiolens.score.statistics.counting import (
    Part,
    answer_cells,
    best_constant,
    best_constant_report,
    kind_values,
    option_flags,
    skill,
    tier_values,
)
from cardiolens.score.statistics.items import Floats, Ints
from cardiolens.score.statistics.metrics import by_patient, weighted_agreement


def masks(answers: list[str]) -> Ints:
    return np.array([sum(1 << "ABCDE".index(key) for key in answer) for answer in answers], np.int64)


def part(kind: str, size: int = 5, items: int = 1) -> Part:
    return Part("X01", 1, kind, tuple(range(size)), items)  # type: ignore[arg-type]


def values(kind: str, answers: list[tuple[str, str]], size: int = 5) -> dict[str, float]:
    gold, parsed = (masks([pair[at] for pair in answers]) for at in (0, 1))
    cells = by_patient(
        answer_cells(part(kind, size), gold, parsed), np.zeros(len(answers), np.int64), units=1
    )
    return {name: float(value[0]) for name, value in kind_values(part(kind, size).kind, cells).items()}


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([("AB", "ABCDE")], (40.0, 100.0, 57.142857)),
        ([("AB", "BCD")], (33.333333, 50.0, 40.0)),
        ([("AB", "ABCDE"), ("AB", "BCD")], (37.5, 75.0, 50.0)),
        ([("AB", "")], (0.0, 0.0, 0.0)),
    ],
)
def test_multi_select_pools_options(
    answers: list[tuple[str, str]], expected: tuple[float, float, float]
) -> None:
    found = values("set", answers)
    assert [100 * found[name] for name in ("precision", "recall", "primary")] == pytest.approx(
        expected, abs=1e-4
    )


def test_a_conservative_reader_loses_recall_and_keeps_precision() -> None:
    dice = np.random.default_rng(1)
    gold = dice.random((120, 5)) < 0.5
    gold[:, 0] = True
    recalls = []
    for dropped in (0.0, 0.3, 0.6):
        found = gold & (dice.random(gold.shape) >= dropped)
        pairs = [
            tuple("".join(np.array(list("ABCDE"))[row]) for row in both)
            for both in zip(gold, found, strict=True)
        ]
        scores = values("set", pairs)  # type: ignore[arg-type]
        assert scores["precision"] == 1
        recalls.append(scores["recall"])
    assert recalls[0] == 1
    assert recalls == sorted(recalls, reverse=True)


def pairs_of(table: list[list[int]]) -> list[tuple[str, str]]:
    return [
        ("ABCDE"[gold], "ABCDE"[called])
        for gold, row in enumerate(table)
        for called, number in enumerate(row)
        for _ in range(number)
    ]


@pytest.mark.parametrize(
    ("table", "accuracy", "macro"),
    [
        ([[0, 0, 10], [0, 0, 20], [0, 0, 70]], 0.7, 0.27451),
        ([[2, 1, 7], [1, 6, 13], [2, 4, 64]], 0.72, 0.49503),
    ],
)
def test_confusion_vectors(table: list[list[int]], accuracy: float, macro: float) -> None:
    found = values("diagnosis", pairs_of(table), 3)
    assert (found["primary"], found["macro_f1"]) == pytest.approx((accuracy, macro), abs=1e-4)
    assert values("choice", pairs_of(table), 3)["primary"] == pytest.approx(accuracy)


def test_an_unparsed_answer_counts_against_its_class() -> None:
    found = values("diagnosis", [("A", "A"), ("A", ""), ("B", "B")], 2)
    assert found["macro_f1"] == pytest.approx((2 / 3 + 1) / 2)
    assert found["primary"] == pytest.approx(2 / 3)


def test_kappa_of_two_raters() -> None:
    different = 1.0 - np.eye(2)
    assert weighted_agreement(np.array([[40.0, 5], [5, 50]]), different) == pytest.approx(0.79798, abs=1e-4)
    assert np.isnan(weighted_agreement(np.array([[5.0, 0], [0, 0]]), different))


@pytest.mark.parametrize("kind", ["set", "choice", "diagnosis"])
def test_nothing_to_measure_is_undefined(kind: str) -> None:
    assert np.isnan(list(values(kind, []).values())).all()


@given(st.integers(0, 2**32 - 1), st.sampled_from(["set", "choice", "diagnosis"]))
@settings(max_examples=40)
def test_cells_add_up_over_patients_by_their_weight(seed: int, kind: str) -> None:
    dice = np.random.default_rng(seed)
    gold = 1 << dice.integers(0, 4, 60)
    parsed = dice.integers(0, 2**4, 60) if kind == "set" else 1 << dice.integers(0, 4, 60)
    patient, weights = np.arange(60) % 6, dice.integers(0, 4, 6)
    of_kind = part(kind, 4)
    cells = by_patient(answer_cells(of_kind, gold, parsed), patient, 6)
    drawn = np.repeat(np.arange(60), weights[patient])
    whole: Floats = by_patient(
        answer_cells(of_kind, gold[drawn], parsed[drawn]), np.zeros(len(drawn), int), 1
    )
    assert (cells @ weights == whole[:, 0]).all()


def constants(kind: str, gold: list[str], size: int) -> dict[str, float]:
    flags: Floats = np.array([[key in answer for answer in gold] for key in "ABCDE"[:size]], float)
    part = Part("X01", 1, kind, tuple(range(size)), 1)  # type: ignore[arg-type]
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


def test_the_score_of_diagnoses_is_the_mean_of_their_macro_f1() -> None:
    values = {"primary": np.array([0.9]), "macro_f1": np.array([0.4])}
    (found,) = tier_values({Part("D02", 3, "diagnosis", (0, 1), 5): values}, 10).items()
    assert found == (("primary", "tier:3"), 0.4)
