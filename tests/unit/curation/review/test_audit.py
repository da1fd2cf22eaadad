"""An audit of a finished run: what a person is shown, what is kept, and what is told of misreading."""

import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow.compute as pc
import pytest
from page_run import finished, small_spec
from running_server import running
from small_cohort import make_cohort

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.curation.review.audit import LEDGER, AuditDesk, audit_server, read_readings, report
from cardiolens.curation.review.audit_report import audit_report
from cardiolens.curation.review.replies import (
    SAMPLE,
    Sample,
    draw,
    judged_choices,
    keep,
    read_sample,
    shown_replies,
)
from cardiolens.show.local_server import LocalServer
from cardiolens.show.notebook.run import FinishedRun, read_run
from cardiolens.show.page.page_data import read_facts
from cardiolens.show.page.sections.run_setup import run_setup
from cardiolens.storage.places import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    root = make_cohort(tmp_path_factory.mktemp("audit"), 4)
    return read_run(finished(small_spec(root, "audit", control=["none"])).root)


def desk_of(run: FinishedRun, sample: Sample, path: Path) -> AuditDesk:
    return AuditDesk(sample, shown_replies(run, [one.place for one in sample.replies]), path)


@pytest.fixture
def desk(run: FinishedRun, tmp_path: Path) -> Iterator[AuditDesk]:
    sample = draw(judged_choices(run), 30, seed=1)
    with closing(desk_of(run, sample, tmp_path / LEDGER)) as desk:
        yield desk


@pytest.fixture
def server(desk: AuditDesk) -> Iterator[LocalServer]:
    with running(audit_server(desk)) as server:
        yield server


def asked(server: LocalServer, path: str, body: Any = None) -> tuple[int, Any]:
    """Send one request of the page."""
    base = urlsplit(server.address)
    connection = http.client.HTTPConnection(base.hostname or "", base.port, timeout=300)
    headers = (
        {"Content-Type": "application/json", "Origin": f"http://{base.netloc}"} if body is not None else {}
    )
    payload = None if body is None else json.dumps(body)
    connection.request("GET" if body is None else "POST", f"{base.path}{path}", payload, headers)
    reply = connection.getresponse()
    content = reply.read()
    connection.close()
    return reply.status, json.loads(content) if "json" in (reply.getheader("Content-Type") or "") else content


def test_a_person_is_shown_neither_model_nor_our_reading(server: LocalServer) -> None:
    status, state = asked(server, "next.json")
    assert status == 200
    assert state.keys() == {
        "number",
        "of",
        "read",
        "question",
        "options",
        "several",
        "reply",
        "cut",
        "chosen",
    }
    assert state["chosen"] is None
    for path in ("", "audit.js", "audit.css"):
        assert asked(server, path)[0] == 200


def test_a_reading_is_on_disk_and_the_next_reply_follows(server: LocalServer, desk: AuditDesk) -> None:
    first = asked(server, "next.json")[1]
    letter = first["options"][0][0]
    state = asked(server, "read", {"number": first["number"], "letters": [letter]})[1]
    assert (state["read"], state["number"]) == (1, first["number"] + 1)
    assert asked(server, f"replies/{first['number']}")[1]["chosen"] == [letter]
    assert read_readings(desk.path) == desk.readings


def test_a_reading_that_the_disk_does_not_take_is_told_and_can_be_chosen_again(
    server: LocalServer, desk: AuditDesk
) -> None:
    def is_full(_: str, __: Path) -> None:
        raise OSError(28, "No space left on device")

    reading = {"number": 0, "letters": []}
    disk.hooks.append(is_full)
    try:
        state = asked(server, "read", reading)[1]
    finally:
        disk.hooks.remove(is_full)
    assert state["error"] == "not saved: the file of readings cannot be written (No space left on device)"
    assert read_readings(desk.path) == {}
    assert asked(server, "read", reading)[1]["read"] == 1


def test_a_person_who_reads_as_we_do_finds_nothing_and_planted_misreadings_are_found(
    run: FinishedRun, desk: AuditDesk
) -> None:
    verdicts = judged_choices(run)
    parsed = {(row["arm_id"], row["qa_id"]): tuple(row["parsed"] or ()) for row in verdicts}
    places = [(one.arm_id, one.qa_id) for one in desk.sample.replies]
    same = {place: parsed[place] for place in places}
    told = audit_report(desk.sample, same, verdicts)
    assert all(entry["misread"]["value"] == entry["missed"]["value"] == 0 for entry in told["models"])
    planted = dict(same)
    planted[next(place for place in places if same[place])] = ()
    told = audit_report(desk.sample, planted, verdicts)
    assert sum(entry["misread"]["value"] > 0 for entry in told["models"]) == 1
    assert all(pair["most_by_reading"] > 0 for pair in told["neighbours"])


def test_the_letters_of_a_person_are_those_that_the_model_saw(run: FinishedRun, desk: AuditDesk) -> None:
    requests = run.requests.filter(pc.equal(run.requests["status"], "planned")).to_pylist()
    displayed = {(row["arm_id"], row["qa_id"]): row["option_keys"] for row in requests}
    for number, one in enumerate(desk.sample.replies):
        place = (one.arm_id, one.qa_id)
        last = desk.state(number)["options"][-1]
        desk.read(number, [last[0]])
        assert desk.readings[place] == (displayed[place][-1],)


def test_a_sample_is_drawn_once_and_a_report_needs_one(run: FinishedRun, tmp_path: Path) -> None:
    sample = draw(judged_choices(run), 20, seed=0)
    keep(tmp_path / SAMPLE, sample)
    assert read_sample(tmp_path / SAMPLE) == sample
    (tmp_path / SAMPLE).write_text("{}")
    with pytest.raises(InputError, match="is no sample"):
        read_sample(tmp_path / SAMPLE)
    with pytest.raises(InputError, match="no audit yet"):
        report([f"run={run.folder}"])


def test_a_report_stands_beside_the_scores(run: FinishedRun, capsys: pytest.CaptureFixture[str]) -> None:
    sample = draw(judged_choices(run), 20, seed=0)
    keep(run.folder / SAMPLE, sample)
    with closing(desk_of(run, sample, run.folder / LEDGER)) as desk:
        for number in range(len(sample.replies)):
            desk.read(number, [])
    assert report([f"run={run.folder}"]) == 0
    assert "misread" in capsys.readouterr().out
    assert json.loads((run.folder / "audit.json").read_text())["schema"] == "audit-1"
    facts = read_facts(Run(run.folder), [Run(run.folder)])
    tables = run_setup(facts).tables
    (table,) = (one for one in tables if one.title == "Replies that a person read")
    assert sorted(str(row[0]) for row in table.rows) == sorted(facts.models)
    (run.folder / "audit.json").write_text('{"models": 5}')
    with pytest.raises(InputError, match="make it anew with"):
        read_facts(Run(run.folder), [Run(run.folder)])
    (run.folder / "audit.json").unlink()
    unknown = "is not known of this run"
    notes = " ".join(
        run_setup(replace(facts, audits=())).notes
    )  # simulated readers write what the rules read
    assert unknown not in notes
    real = replace(facts.arms[0], model="a")
    assert unknown in " ".join(run_setup(replace(facts, audits=(), arms=(real,))).notes)


EMPTY = Sample((), {})


def test_a_broken_line_of_the_ledger_is_named(tmp_path: Path) -> None:
    (tmp_path / LEDGER).write_text('{"arm_id": "a"}\n')
    with pytest.raises(InputError, match="line 1"):
        AuditDesk(EMPTY, {}, tmp_path / LEDGER)


def test_a_line_that_a_kill_cut_off_is_no_reading_and_hinders_none(run: FinishedRun, tmp_path: Path) -> None:
    sample, path = draw(judged_choices(run), 30, seed=1), tmp_path / LEDGER
    first, second = (one.place for one in sample.replies[:2])
    with closing(desk_of(run, sample, path)) as desk:
        desk.read(0, [])
        desk.read(1, [])
    path.write_bytes(path.read_bytes()[:-20])
    assert read_readings(path) == {first: ()}
    with closing(desk_of(run, sample, path)) as desk:
        desk.read(1, [])
    assert read_readings(path) == {first: (), second: ()}


def test_two_pages_do_not_write_to_one_ledger(desk: AuditDesk) -> None:
    with pytest.raises(InputError, match="another audit page"):
        AuditDesk(EMPTY, {}, desk.path)
