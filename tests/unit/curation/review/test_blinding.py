"""What reaches a person who reads as models do: no name, order, header or error that could tell an answer."""

import json
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from given_words import serve
from reviewers import CATALOGUE, Table, items_of
from running_server import running
from test_review_server import Client, press

from cardiolens.curation.review.desk import UNREADABLE, Blinding, Desk, review_server
from cardiolens.curation.review.people import read_people
from cardiolens.curation.review.queue import NAME as REVIEWS
from cardiolens.curation.review.queue import Ledger, Queue
from cardiolens.curation.review.review_items import Item, read_items
from cardiolens.curation.review.review_pictures import Pictures

PLANT = "answer-is-B"  # in every field of the inputs that holds free text


def planted(data: Path, root: Path) -> tuple[Path, Path]:
    """Questions and studies of the phantom with a plant in each field that is not shown to models."""
    study = root / "studies" / f"S-{PLANT}"
    shutil.copytree(data / "studies" / "PH-NORMAL", study)
    manifest = json.loads((study / "study.json").read_text())
    manifest |= {"study_id": study.name, "patient_id": f"P-{PLANT}", "cohort": [PLANT], "report_id": PLANT}
    manifest |= {"vendor": PLANT, "site": PLANT, "species": PLANT}
    for volume in manifest["volumes"]:
        for entry in (volume, volume["mask"]) if volume.get("mask") else (volume,):
            name = f"{PLANT}-{Path(entry['path']).name}"
            (study / entry["path"]).rename(study / name)
            entry["path"] = name
    (study / "study.json").write_text(json.dumps(manifest))
    lines = []
    for number, text in enumerate((data / "questions.jsonl").read_text().splitlines()):
        record = json.loads(text) | {"qa_id": f"Q{number}-{PLANT}", "study_id": study.name}
        record |= {"patient_id": f"P-{PLANT}", "evidence": [PLANT], "verification": {"status": PLANT}}
        lines.append(json.dumps(record | {"parent": PLANT, "exclusive": [PLANT]}))
    questions = root / PLANT / f"{PLANT}.jsonl"
    questions.parent.mkdir()
    questions.write_text("\n".join(lines) + "\n")
    found = {"study_id": study.name, "items": [{"id": PLANT, "quote": PLANT, "start": 0, "end": 11}]}
    (questions.parent / "2-findings.rules.jsonl").write_text(json.dumps(found) + "\n")
    sections = {"study_id": study.name, "text": PLANT}
    (questions.parent / "1-sections.jsonl").write_text(json.dumps(sections) + "\n")
    return questions, root / "studies"


@contextmanager
def serving(questions: Path, studies: Path, out: Path) -> Iterator[tuple[Desk, Client]]:
    """A page of `mode=read` as the command makes it, and a person's link."""
    items = read_items(questions, studies, CATALOGUE, "read")
    people = read_people(out, ("anna",), None)
    blinding, ledger = Blinding(people.key), Ledger(out / REVIEWS)
    queue = Queue(blinding.in_order(items.items), ledger, "read")
    desk = Desk(queue, Pictures(items.studies), blinding)
    with closing(ledger), running(review_server(desk, people)) as server:
        (token,) = people.by_token
        yield desk, Client(server.server_port, f"/{token}")


def requests_of(state: dict[str, Any], loops: list[dict[str, Any]]) -> Iterator[tuple[str, str, Any]]:
    """All that a page asks for at an item, and some that it does not."""
    for path in ("/", "/review.js", "/review.css", "/state.json", "/nothing"):
        yield "GET", path, None
    handle = state["item"]["item"]
    yield "GET", f"/loops/{handle}", None
    for one in loops:
        for rank in range(one["slices"] + 1):
            yield "GET", f"/sheets/{handle}/{one['id']}/{rank}.png", None
            yield "GET", f"/sheets/{handle}/{one['id']}/{rank}-mask.png", None
    for body in ({}, {"id": "x" * 20, "item": handle, "verdict": "accept"}):
        yield "POST", "/decide", body


@pytest.mark.parametrize("readable", [True, False])
def test_an_answer_that_stands_in_every_field_is_in_no_byte_that_is_sent(
    prepared_phantom: Path, tmp_path: Path, readable: bool
) -> None:
    questions, studies = planted(prepared_phantom / "data", tmp_path)
    if not readable:
        for path in studies.glob("*/*.nii*"):
            path.write_bytes(b"no image")
    sent: list[bytes] = []
    with serving(questions, studies, tmp_path / "out") as (desk, client):
        items = list(desk.queue.items.values())
        state = client.tree("GET", "/state.json")
        for number in range(len(items)):
            told = client.tree("GET", f"/loops/{state['item']['item']}")
            assert readable or (told["loops"], told["remark"]) == ([], UNREADABLE)
            for method, path, body in requests_of(state, told["loops"] if number == 0 else []):
                status, content, headers = client.ask(method, path, body)
                assert status == 404 or not path.endswith("-mask.png")
                sent += [content, json.dumps(headers).encode(), str(status).encode()]
            state = press(client, state, f"r{number}", verdict="cannot_tell")
            sent.append(json.dumps(state).encode())
        assert state["item"] is None
        undone = client.tree("POST", "/decide", {"id": "u" * 20, "undo": True})
        assert undone["item"]["item"] == desk.blinding.item(items[-1])
        sent.append(json.dumps(undone).encode())
    hidden = {PLANT, *(item.digest for item in items), *(item.question.study_id for item in items)}
    assert len(sent) > 20 * len(items)
    assert [text for text in hidden if any(text.encode() in content for content in sent)] == []
    kept = (tmp_path / "out" / REVIEWS).read_text()
    assert all(f'"{item.qa_id}"' in kept for item in items), "decisions are kept under the real ids"


def test_a_page_that_was_open_while_the_server_started_again_loses_no_decision(
    prepared_phantom: Path, tmp_path: Path
) -> None:
    questions, studies = planted(prepared_phantom / "data", tmp_path)
    with serving(questions, studies, tmp_path / "out") as (_, client):
        before = client.tree("GET", "/state.json")
    with serving(questions, studies, tmp_path / "out") as (_, client):
        after = press(client, before, "again", verdict="cannot_tell")
        assert "error" not in after
        assert after["done"] == 1
    with serving(questions, studies, tmp_path / "other") as (_, client):
        assert client.tree("GET", "/state.json")["item"]["item"] != before["item"]["item"]


def test_real_ids_are_not_heard_so_that_nobody_can_try_them(prepared_phantom: Path, tmp_path: Path) -> None:
    questions, studies = planted(prepared_phantom / "data", tmp_path)
    with serving(questions, studies, tmp_path / "out") as (desk, client):
        item = next(iter(desk.queue.items.values()))
        real, false = ({"qa_id": name, "item": item.digest} for name in (item.qa_id, "no-such"))
        told = [
            client.tree("POST", "/decide", {"id": f"try-{k}".ljust(20, "x"), "verdict": "cannot_tell", **ids})
            for k, ids in enumerate((real, false))
        ]
        assert all("no longer part of this review" in one["error"] for one in told)
        assert desk.queue.done("anna") == 0
        assert client.ask("GET", f"/loops/{item.digest}")[0] == 404


def named(item: Item, study: str, qa_id: str) -> Item:
    return replace(
        item, question=item.question.model_copy(update={"study_id": study, "qa_id": qa_id}), digest=qa_id
    )


def test_the_order_keeps_studies_and_subtasks_together_and_tells_nothing_of_ids(tmp_path: Path) -> None:
    c01, c02 = items_of(tmp_path, 1, ("C01", "C02"))
    items = [
        named(one, f"S{study:02d}", f"{study:02d}-{one.subtask.id}-{letter}")
        for study in range(30)
        for one in (c01, c02)
        for letter in "ABCD"
    ]
    orders = [[item.qa_id for item in Blinding(bytes([k]) * 32).in_order(items)] for k in range(2)]
    assert orders[0] != orders[1]
    for order in orders:
        assert sorted(order) == sorted(item.qa_id for item in items)
        assert order != sorted(order)
        studies = [name[:2] for name in order[::8]]
        assert studies != sorted(studies)
        for at, study in enumerate(studies):
            block = order[at * 8 : at * 8 + 8]
            assert {name[:6] for name in block[:4]} == {f"{study}-C01"}
            assert {name[:6] for name in block[4:]} == {f"{study}-C02"}
        assert len({tuple(name[-1] for name in order[k : k + 4]) for k in range(0, 240, 4)}) > 5


def test_an_answer_that_decides_what_is_asked_next_cannot_be_taken_back(tmp_path: Path) -> None:
    child = next(name for name, subtask in CATALOGUE.subtasks.items() if subtask.parent)
    parent = CATALOGUE[child].parent
    table = Table(tmp_path, items_of(tmp_path, 2, ("C01", parent, child)), mode="read")
    assert [table.press("anna", "cannot_tell") for _ in range(3)] == [None] * 3
    while (refused := table.press("anna", undo=True)) is None:
        pass
    assert table.queue.items[[*table.ledger.reviews.of_reader("anna", "read")][-1]].subtask.id == parent
    assert "cannot be taken back" in refused
    table.ledger.close()


def test_the_command_blinds_those_who_read_and_nobody_else(
    prepared_phantom: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions, studies = planted(prepared_phantom / "data", tmp_path)
    desks: list[Desk] = []
    monkeypatch.setattr(
        "cardiolens.curation.review.review_commands.serve_desk", lambda desk, *_: desks.append(desk)
    )
    words = [f"questions={questions}", f"studies={studies}", f"out={tmp_path}/out", "port=0"]
    assert serve([*words, "mode=verify", "readers=[anna]"]) == 0
    assert serve([*words, "mode=read"]) == serve([*words, "mode=read"]) == 0
    assert desks[0].blinding is None
    assert desks[1].blinding == desks[2].blinding
    read = list(desks[1].queue.items.values())
    assert read == desks[1].blinding.in_order(read)
