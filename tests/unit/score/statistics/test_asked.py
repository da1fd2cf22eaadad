"""Answers read an arm at a time are those of the whole table, and mean the same from arm to arm."""

import pickle
from dataclasses import fields
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from cardiolens.score.statistics.items import Answers, ArmAnswers, Items, Reports
from cardiolens.storage.schemas import VERDICTS
from cardiolens.storage.spool import SpilledMapping
from cardiolens.storage.tables import from_rows

NUMBERED = {"question", "request"}  # these columns may hold other numbers, alike where the names are alike


def verdicts(seed: int, arms: int = 4) -> pa.Table:
    """Arms with answers and reports: some unjudged, some asked by a request that another arm has as well."""
    dice = np.random.default_rng(seed)
    rows: list[dict[str, object]] = []
    for arm in range(arms):
        for patient in range(6):
            for subtask, channel in (("C01", "answer"), ("C02", "answer"), ("R-T2", "fields")):
                entities = [f"size: {size}" for size in range(arm + 2)]
                names = entities if channel == "fields" else list("ABC")
                rows.append(
                    {
                        "arm_id": f"arm{arm}",
                        "qa_id": f"p{patient}:{subtask}",
                        "channel": channel,
                        "patient_id": f"p{patient}",
                        "tier": 2 if channel == "fields" else 1,
                        "sequence": "cine",
                        "subtask": subtask,
                        "answer_type": "multi" if channel == "answer" else "report",
                        "request_key": f"{dice.integers(2)}/{patient}/{subtask}",
                        "status": "judged" if arm and dice.random() < 0.8 else "missing",
                        "parse_status": "ok",
                        "parsed": sorted(dice.choice(names, 2, replace=False).tolist()),
                        "gold": names[:1],
                        "counts": [("options", 3.0), ("tp", 1.0)],
                    }
                )
    return from_rows([rows[at] for at in dice.permutation(len(rows))], VERDICTS)


@pytest.mark.parametrize("seed", range(3))
def test_an_arm_is_what_it_is_in_the_whole_table(seed: int) -> None:
    table = verdicts(seed)
    whole, asked = Answers.of(table), ArmAnswers.of(table)
    assert asked.arms == ["arm1", "arm2", "arm3"]
    items, reports = (
        np.array(sorted(of_kind(table, channel)["arm_id"].to_pylist())) for channel in ("answer", "fields")
    )
    for arm in asked.asked:
        of_arm = whole.where(items == arm, reports == arm)
        same(asked.asked[arm], of_arm)
        if arm in asked.arms:
            same(asked.judged(arm), of_arm.judged)


@pytest.mark.parametrize("seed", range(3))
def test_numbers_of_two_arms_are_alike_where_names_are(seed: int) -> None:
    table = verdicts(seed)
    asked = ArmAnswers.of(table)
    order = [(name, "ascending") for name in ("subtask", "patient_id")]
    by_arm = {arm: table.filter(pc.equal(table["arm_id"], arm)).sort_by(order) for arm in asked.asked}
    for one, other in combinations(asked.asked, 2):
        for kind, channel in (("items", "answer"), ("reports", "fields")):
            mine, theirs = (getattr(asked.asked[arm], kind) for arm in (one, other))
            for column, name in (("qa_id", "question"), ("request_key", "request"), ("parsed", "parsed")):
                told = [of_kind(by_arm[arm], channel)[column].to_pylist() for arm in (one, other)]
                alike = [first == second for first, second in zip(*told, strict=True)]
                assert (getattr(mine, name) == getattr(theirs, name)).tolist() == alike


def of_kind(rows: pa.Table, channel: str) -> pa.Table:
    return rows.filter(pc.equal(rows["channel"], channel))


def same(found: Answers, expected: Answers) -> None:
    for mine, theirs in ((found.items, expected.items), (found.reports, expected.reports)):
        assert isinstance(mine, Items | Reports)
        for name in {field.name for field in fields(mine)} - NUMBERED:
            assert np.array_equal(getattr(mine, name), getattr(theirs, name)), name


def test_a_shelf_gives_back_what_was_put_there_in_other_processes_too() -> None:
    shelf = SpilledMapping[str, np.ndarray]()
    for number in range(40):
        shelf[str(number)] = np.full(1000, number)
    shelf["5"] = np.full(7, -5)
    for mine in (shelf, pickle.loads(pickle.dumps(shelf))):
        assert list(mine) == [str(number) for number in range(40)]
        assert all(mine[name][0] == (-5 if name == "5" else int(name)) for name in mine)
        assert "none" not in mine
