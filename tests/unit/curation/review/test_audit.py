"""An audit of a finished run: what a person is shown, what is kept, and what is told of misreading."""

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pyarrow.compute as pc
import pytest
from given_words import audited, report_of
from page_run import finished, small_spec
from running_server import running
from small_cohort import make_cohort
from test_review_server import Client, press

from cardiolens.base.errors import InputError
from cardiolens.curation.review.audit import (
    AUDITOR,
    LEDGER,
    SAMPLE,
    Sample,
    audit_desk,
    audit_report,
    draw,
    judged_choices,
    keep,
    read_sample,
    readings_of,
    sampled_items,
)
from cardiolens.curation.review.desk import Desk, review_server
from cardiolens.curation.review.people import People, Person
from cardiolens.curation.review.queue import Ledger, read_ledger
from cardiolens.show.local_server import LocalServer
from cardiolens.show.notebook.run import FinishedRun, read_run
from cardiolens.show.page.page_data import read_facts
from cardiolens.show.page.sections.page_sections import section_of
from cardiolens.storage.places import Run

TOKEN = "t" * 32
PEOPLE = People({TOKEN: Person(AUDITOR, "reader")}, key=b"k" * 32)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    root = make_cohort(tmp_path_factory.mktemp("audit"), 4)
    return read_run(finished(small_spec(root, "audit", control=["none", "shuffled_options"])).root)


@pytest.fixture
def copied(run: FinishedRun, tmp_path: Path) -> Path:
    """The folder of the run, to write in."""
    return Path(shutil.copytree(run.folder, tmp_path / "outputs" / run.folder.name))


@pytest.fixture(scope="module")
def sample(run: FinishedRun) -> Sample:
    return draw(judged_choices(run), 30, seed=1)


def desk_of(run: FinishedRun, sample: Sample, path: Path) -> Desk:
    return audit_desk(run, sample, Ledger(path), PEOPLE.key)


@pytest.fixture
def client(run: FinishedRun, sample: Sample, tmp_path: Path) -> Iterator[Client]:
    desk = desk_of(run, sample, tmp_path / LEDGER)
    with closing(desk.queue.ledger), running(review_server(desk, PEOPLE)) as server:
        yield Client(server.server_port, f"/{TOKEN}")


def test_a_person_is_shown_neither_arm_nor_our_reading(client: Client, sample: Sample) -> None:
    status, content, _ = client.ask("GET", "/state.json")
    item = json.loads(content)["item"]
    assert status == 200
    assert item.keys() == {
        *("qa_id", "item", "study", "subtask", "question", "options", "multi", "exclusive", "reply", "cut")
    }
    assert not [one.arm_id for one in sample.replies if one.arm_id.encode() in content]
    for path in (f"/loops/{item['item']}", f"/sheets/{item['item']}/cine_sax/0.png"):
        assert client.ask("GET", path)[0] == 404


def test_letters_are_those_that_the_model_saw_and_survive_a_restart(
    client: Client, run: FinishedRun, sample: Sample, tmp_path: Path
) -> None:
    state = client.tree("GET", "/state.json")
    for number in range(12):
        last = state["item"]["options"][-1]["key"]
        state = press(client, state, f"r{number}", verdict="answer", answer=[last])
    assert state["done"] == 12
    requests = run.requests.filter(pc.equal(run.requests["status"], "planned")).to_pylist()
    displayed = {(row["qa_id"], row["arm_id"]): row["option_keys"] for row in requests}
    places = [one.place for one in sample.replies]
    readings = readings_of(read_ledger(tmp_path / LEDGER), sampled_items(run, sample))
    assert readings == {place: (displayed[place][-1],) for place in places[:12]}
    assert any(keys != tuple(sorted(displayed[place])[-1:]) for place, keys in readings.items())


def test_a_person_who_reads_as_we_do_finds_nothing_and_planted_misreadings_are_found(
    run: FinishedRun, sample: Sample
) -> None:
    verdicts = judged_choices(run)
    parsed = {(row["qa_id"], row["arm_id"]): tuple(row["parsed"] or ()) for row in verdicts}
    same = {one.place: parsed[one.place] for one in sample.replies}
    told = audit_report(sample, same, verdicts)
    assert all(entry["misread"]["value"] == entry["missed"]["value"] == 0 for entry in told["models"])
    planted = same | {next(place for place in same if same[place]): ()}
    told = audit_report(sample, planted, verdicts)
    assert sum(entry["misread"]["value"] > 0 for entry in told["models"]) == 1
    first = [row for row in verdicts if row["model"] == verdicts[0]["model"]]  # the other was not
    assert [entry["model"] for entry in audit_report(sample, same, first)["models"]] == [first[0]["model"]]


def test_a_sample_is_drawn_once_and_a_report_needs_one(
    run: FinishedRun, sample: Sample, tmp_path: Path
) -> None:
    keep(tmp_path / SAMPLE, sample)
    assert read_sample(tmp_path / SAMPLE) == sample
    (tmp_path / SAMPLE).write_text("{}")
    with pytest.raises(InputError, match="is no sample"):
        read_sample(tmp_path / SAMPLE)
    with pytest.raises(InputError, match="no audit yet"):
        report_of([f"run={run.folder}"])


def test_the_command_prints_a_link_and_keeps_its_sample(
    run: FinishedRun, copied: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: LocalServer) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(LocalServer, "serve_forever", interrupted)
    words = [f"run={copied}", f"store={run.configuration.store}", "replies=20", "port=0"]
    assert audited(words) == audited(words) == 0
    links = re.findall(r"auditor \(reader\): http://127\.0\.0\.1:\d+/(\S{32})/", capsys.readouterr().out)
    assert len(set(links)) == 2
    assert read_sample(copied / SAMPLE) == draw(judged_choices(run), 20, seed=0)
    assert read_ledger(copied / LEDGER).decided["audit"] == {}


def test_a_report_stands_beside_the_scores(
    run: FinishedRun, copied: Path, sample: Sample, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(copied / SAMPLE, sample)
    desk = desk_of(run, sample, copied / LEDGER)
    with closing(desk.queue.ledger), running(review_server(desk, PEOPLE)) as server:
        client = Client(server.server_port, f"/{TOKEN}")
        state = client.tree("GET", "/state.json")
        while state["item"]:
            state = press(client, state, f"r{state['done']}", verdict="cannot_tell")
    assert report_of([f"run={copied}", f"store={run.configuration.store}"]) == 0
    assert "misread" in capsys.readouterr().out
    assert json.loads((copied / "audit.json").read_text())["schema"] == "audit-1"
    facts = read_facts(Run(copied), [Run(copied)])
    tables = section_of(facts, "asked").tables
    (table,) = (one for one in tables if one.title == "Replies that a person read")
    assert sorted(str(row[0]) for row in table.rows) == sorted(facts.models)
    (copied / "audit.json").write_text('{"models": 5}')
    with pytest.raises(InputError, match="make it anew with"):
        read_facts(Run(copied), [Run(copied)])
    (copied / "audit.json").unlink()
    unknown = "is not known of this run"
    notes = " ".join(
        section_of(replace(facts, audits=()), "asked").notes
    )  # simulated readers write what the rules read
    assert unknown not in notes
    real = replace(facts.arms[0], model="a")
    assert unknown in " ".join(section_of(replace(facts, audits=(), arms=(real,)), "asked").notes)
