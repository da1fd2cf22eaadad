"""Readers that choose their frames, on Ray: what each was shown, what is counted, what is not asked again."""

import shutil
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cardiolens.show.page.usage import ChoiceCounts, choices_of
from cardiolens.storage import schemas, tables
from cardiolens.storage.places import Run
from tests.ray.conftest import Place

pytestmark = [pytest.mark.ray, pytest.mark.full]

K, ROUNDS = 4, 2
READERS = ("greedy", "lazy", "illegal")
ASKED = [
    f"model=[{','.join(READERS)}]",
    "selector=[self,once,clinical]",
    f"budget=[{K}]",
    "subtask=[C10,L01]",
    "tracker=none",
]
SHOWN = {  # frames beside the question, by reader and selector; none: it was not asked
    ("greedy", "self"): K,
    ("greedy", "once"): K,
    ("lazy", "self"): 1,
    ("lazy", "once"): 1,
    ("illegal", "self"): K,
    ("illegal", "once"): None,
}
REQUESTS = {  # for frames, before the question; a full budget ends them
    ("greedy", "self"): 1,
    ("greedy", "once"): 1,
    ("lazy", "self"): ROUNDS,
    ("lazy", "once"): 1,
    ("illegal", "self"): ROUNDS,
    ("illegal", "once"): 1,
}


@pytest.fixture(scope="module")
def chosen(prepared: Place, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A finished sweep of readers that choose, in one request for frames or in two, beside `clinical`."""
    root = tmp_path_factory.mktemp("chosen")
    shutil.copytree(prepared.root / "store", root / "store")
    write(root / "conf" / "selector" / "once.yaml", "once: {kind: self, rounds: 1}")
    for name in READERS:
        write(
            root / "conf" / "model" / f"{name}.yaml",
            f"{name}: {{engine: uniform, options: {{chooses: {name}}}}}",
        )
    place = Place(root, prepared.data)
    place.sweep(*ASKED)
    return place


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")


def arms(place: Place) -> dict[str, tuple[str, str]]:
    """Reader and selector by arm_id."""
    return {arm["arm_id"]: (arm["model"], arm["selector"]) for arm in place.manifest()["arms"]}


def counts(place: Place) -> dict[tuple[str, str], ChoiceCounts]:
    named = arms(place)
    return {named[one.arm_id]: one for one in choices_of([Run(place.run)], [place.manifest()])}


def requests(place: Place, reader: str) -> list[dict[str, Any]]:
    return tables.read(place.run / "requests" / reader, schemas.REQUESTS).to_pylist()


def seen(place: Place) -> dict[str, list[dict[str, Any]]]:
    """Rows of each chain, in the order of the table."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in tables.read(place.run / "seen", schemas.SEEN).to_pylist():
        found[row["request_key"]].append(row)
    return found


def test_each_reader_is_shown_what_it_asks_for_and_no_more(chosen: Place) -> None:
    found = counts(chosen)
    assert set(found) == set(SHOWN)
    for arm, shown in SHOWN.items():
        assert found[arm].requests == REQUESTS[arm], arm
        if shown is None:
            assert found[arm].unanswered == found[arm].asked > 0
        else:
            assert (found[arm].unanswered, found[arm].frames) == (0, shown), arm
        assert (found[arm].refused > 0) == (arm[0] == "illegal"), arm


def test_without_a_legal_frame_the_question_ends_as_illegal_selection_and_is_wrong(chosen: Place) -> None:
    named = arms(chosen)
    rows = tables.read(chosen.run / "verdicts", schemas.VERDICTS).to_pylist()
    ended = [row for row in rows if row["parse_status"] == "illegal_selection"]
    assert {named[row["arm_id"]] for row in ended} == {("illegal", "once")}
    assert len(ended) == counts(chosen)["illegal", "once"].asked
    assert all(row["status"] == "judged" and not row["correct"] for row in ended)
    # one completion of the first stage, which is ok: it asked, and one of the chain
    failed = [row for row in completions(chosen) if row["status"] == "illegal_selection"]
    assert {row["request_key"] for row in failed} == {row["request_key"] for row in ended}


def completions(place: Place) -> list[dict[str, Any]]:
    folders = (place.root / "store" / "completions").iterdir()
    return [row for folder in folders for row in tables.read(folder, schemas.COMPLETIONS).to_pylist()]


def test_what_a_reader_saw_stands_in_order_and_grows(chosen: Place) -> None:
    named, shown = arms(chosen), seen(chosen)
    said = {row["request_key"]: row for row in completions(chosen)}
    for reader in READERS:
        for request in requests(chosen, reader):
            arm = named[request["arm_id"]]
            if arm not in SHOWN:
                assert request["request_key"] not in shown, "the plan knew its frames"
                continue
            rows = shown[request["request_key"]]
            asking = REQUESTS[arm]
            assert [row["stage"] for row in rows] == list(range(asking + (SHOWN[arm] is not None)))
            places = [[(frame["volume_id"], frame["idx"]) for frame in row["frames"]] for row in rows]
            assert places[0] == []
            assert all(set(before) <= set(after) for before, after in pairwise(places))
            assert len(places[-1]) == (SHOWN[arm] or 0)
            assert [row["not_shown"] is not None for row in rows] == [at < asking for at in range(len(rows))]
            assert all(row["prompt"].count(schemas.FRAME) == len(row["frames"]) for row in rows)
            assert [row["reply"] for row in rows] == [said[row["step_key"]]["text"] for row in rows]


def test_the_run_counts_what_each_stage_was_asked(chosen: Place) -> None:
    found = counts(chosen)
    told = {(row["model"], row["stage"]): row for row in chosen.manifest()["stages"]}
    for reader in READERS:
        own = {arm: one for arm, one in found.items() if arm[0] == reader}
        for stage in range(1, ROUNDS + 2):
            came = [
                one.asked for arm, one in own.items() if stage <= REQUESTS[arm] + (SHOWN[arm] is not None)
            ]
            row = told.get((reader, stage), {"asked": 0})
            assert row["asked"] == sum(came), (reader, stage)


def test_a_run_repeated_asks_nothing_again(chosen: Place) -> None:
    before = sorted(row["request_key"] for row in completions(chosen))
    table = tables.read(chosen.run / "seen", schemas.SEEN)
    chosen.sweep(*ASKED)
    assert chosen.manifest()["requests"]["executed"] == 0
    assert all(row["executed"] == 0 for row in chosen.manifest()["stages"])
    assert sorted(row["request_key"] for row in completions(chosen)) == before
    assert len(before) == len(set(before))
    assert tables.read(chosen.run / "seen", schemas.SEEN).equals(table)
