"""The server of review: who may ask for what, and what they are told."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from given_words import export, serve
from reviewers import CATALOGUE
from running_server import running

from cardiolens.base.errors import InputError, RunError
from cardiolens.curation.review.desk import Blinding, Desk, review_server
from cardiolens.curation.review.people import read_people
from cardiolens.curation.review.queue import NAME, Ledger, Queue
from cardiolens.curation.review.review_items import read_items
from cardiolens.curation.review.review_pictures import Pictures


def drafts(data: Path, folder: Path) -> Path:
    """The phantom's questions as drafts with their report, as `cardiolens.questions` leaves them."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for text in (data / "questions.jsonl").read_text().splitlines():
        record = json.loads(text)
        if record["answer_type"] != "report":
            record |= {"evidence": ["R1"], "origin": "report", "verification": {"status": "draft"}}
        lines.append(json.dumps(record))
    (folder / "questions.jsonl").write_text("\n".join(lines) + "\n")
    item: dict[str, Any] = {"id": "R1", "quote": "normal size", "start": 7, "end": 18}
    found = {"study_id": "PH-NORMAL", "items": [item]}
    (folder / "2-findings.rules.jsonl").write_text(json.dumps(found) + "\n")
    text = {"study_id": "PH-NORMAL", "text": "LV is: normal size. The secret rest."}
    (folder / "1-sections.jsonl").write_text(json.dumps(text) + "\n")
    return folder / "questions.jsonl"


@dataclass
class Client:
    port: int
    link: str = ""  # the path of a person's link

    def ask(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> tuple[int, bytes, dict[str, str]]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=300)
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        own = f"127.0.0.1:{self.port}"
        told = {"Host": own, "Content-Length": str(len(content))}
        told |= {"Origin": f"http://{own}", "Content-Type": "application/json"} if method == "POST" else {}
        connection.putrequest(method, self.link + path, skip_host=True)
        for name, value in (
            told | {name.replace("_", "-"): value for name, value in headers.items()}
        ).items():
            if value:
                connection.putheader(name, value)
        connection.endheaders(content or None)
        answer = connection.getresponse()
        found = answer.status, answer.read(), dict(answer.getheaders())
        connection.close()
        return found

    def tree(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        status, content, _ = self.ask(method, path, body)
        assert status == 200, content
        found: dict[str, Any] = json.loads(content)
        return found


@dataclass
class Served:
    root: Path
    port: int
    desk: Desk
    links: dict[str, str]

    def client(self, reader: str) -> Client:
        return Client(self.port, self.links[reader])


def served_at(data: Path, root: Path, mode: str) -> Iterator[Served]:
    questions = drafts(data, root / "drafts")
    people = read_people(root, ("anna", "berta"), "third")
    items = read_items(questions, data / "studies", CATALOGUE, mode)
    ledger = Ledger(root / NAME)
    blinding = Blinding(people.key) if mode == "read" else None
    desk = Desk(Queue(items.items, ledger, mode), Pictures(items.studies), blinding)
    with running(review_server(desk, people)) as server:
        links = {person.name: f"/{token}" for token, person in people.by_token.items()}
        yield Served(root, server.server_port, desk, links)
    ledger.close()


@pytest.fixture
def verify(prepared_phantom: Path, tmp_path: Path) -> Iterator[Served]:
    yield from served_at(prepared_phantom / "data", tmp_path, "verify")


@pytest.fixture
def read(prepared_phantom: Path, tmp_path: Path) -> Iterator[Served]:
    yield from served_at(prepared_phantom / "data", tmp_path, "read")


def press(client: Client, state: dict[str, Any], name: str, **said: Any) -> dict[str, Any]:
    item = state["item"]
    return client.tree(
        "POST", "/decide", {"id": name.ljust(20, "x"), "qa_id": item["qa_id"], "item": item["item"], **said}
    )


def test_a_reader_of_a_draft_sees_evidence_and_nobody_elses_decision(verify: Served) -> None:
    anna, berta, third = (verify.client(name) for name in ("anna", "berta", "third"))
    first = anna.tree("GET", "/state.json")
    assert first["item"]["proposal"]
    assert first["item"]["evidence"][0]["text"] == "normal size"
    assert first["item"]["drafted_by"] == ""
    assert first["item"]["report"][7:18] == "normal size"
    before = berta.tree("GET", "/state.json")
    after = press(anna, first, "a1", verdict="reject", reason="bad_images")
    assert after["done"] == 1
    assert berta.tree("GET", "/state.json") == before, "what one says changes nothing for the other"
    assert third.tree("GET", "/state.json")["item"] is None
    press(berta, before, "b1", verdict="accept")
    shown = third.tree("GET", "/state.json")["item"]
    assert [one["verdict"] for one in shown["firsts"]] == ["accept", "reject"]
    assert not any(name in json.dumps(shown) for name in ("anna", "berta"))


def test_the_id_of_an_item_that_is_read_does_not_depend_on_its_truth(
    prepared_phantom: Path, tmp_path: Path
) -> None:
    path = drafts(prepared_phantom / "data", tmp_path)

    def digests(mode: str) -> dict[str, str]:
        items = read_items(path, prepared_phantom / "data" / "studies", CATALOGUE, mode).items
        return {item.qa_id: item.digest for item in items}

    def rewrite(change: Callable[[dict[str, Any]], object]) -> None:
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            change(line)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    def other(line: dict[str, Any]) -> None:
        if line["answer_type"] in ("single", "ordinal"):
            keys = [option["key"] for option in line["options"]]
            line["answer"] = [next(key for key in keys if key not in line["answer"])]

    one = digests("read")
    rewrite(other)
    assert digests("read") == one
    assert set(digests("verify").values()).isdisjoint(one.values())


def test_nothing_is_said_or_kept_without_a_link(verify: Served) -> None:
    anna = verify.client("anna")
    state = anna.tree("GET", "/state.json")
    item = state["item"]
    paths = (
        *("/", "/review.js", "/state.json", f"/loops/{item['item']}"),
        f"/sheets/{item['item']}/cine_sax/0.png",
    )
    body = {"id": "z" * 20, "qa_id": item["qa_id"], "item": item["item"], "verdict": "accept"}
    for link in ("", "/", "/x", verify.links["anna"] + "x", verify.links["anna"][:-1], "/%ff"):
        nobody = Client(verify.port, link)
        assert {nobody.ask("GET", path)[0] for path in paths} == {404}, link
        assert nobody.ask("POST", "/decide", body)[0] == 404
    status, _, headers = anna.ask("GET", "/")
    assert status == 200
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["Referrer-Policy"] == "no-referrer"
    own = f"http://127.0.0.1:{verify.port}"
    for origin in ("", "null", "http://evil.example", f"http://localhost:{verify.port}", own + "0"):
        assert anna.ask("POST", "/decide", body, Origin=origin)[0] == 404, origin
    for host in ("evil.example", f"evil.example:{verify.port}", "127.0.0.1"):
        assert anna.ask("GET", "/", Host=host)[0] == 404
    assert anna.ask("POST", "/decide", body, Content_Type="text/plain")[0] == 400
    assert anna.ask("POST", "/decide", body, Content_Length="99999999")[0] == 413
    for text in (b"[]", b"{", b"[" * 9000, json.dumps(body | {"id": "short"}).encode(), b'{"verdict": NaN}'):
        assert anna.ask("POST", "/decide", text)[0] == 400, text[:40]
    for path in (
        "/../links.json",
        "/%2e%2e/links.json",
        "/links.json",
        f"/{NAME}",
        "/loops/x",
        "/sheets/a/b/c",
    ):
        assert anna.ask("GET", path)[0] == 404, path
    assert anna.tree("GET", "/state.json") == state, "nothing was kept"
    assert press(anna, state, "a1", verdict="accept")["done"] == 1


def test_what_no_review_can_be_made_of_is_named(prepared_phantom: Path, tmp_path: Path) -> None:
    data, out = prepared_phantom / "data", tmp_path / "out"
    path = drafts(data, tmp_path / "drafts")
    words = [f"questions={path}", f"studies={data}/studies", f"out={out}", "mode=verify"]
    with pytest.raises(InputError, match="readers= is not given"):
        serve(words)
    with pytest.raises(InputError, match="holds no review"):
        export([f"out={out}"])
    out.mkdir(exist_ok=True)
    (out / NAME).touch()
    with pytest.raises(RunError, match="nobody has decided on anything yet"):
        export([f"out={out}"])
    with pytest.raises(InputError, match="would replace"):
        serve([*words[:2], f"out={path.parent}", "mode=verify", "readers=[anna]"])
    with pytest.raises(InputError, match="holds no study"):
        serve([words[0], f"studies={tmp_path}/nothing", *words[2:]])


def test_two_people_read_over_the_server_and_the_export_tells_how_far_they_agree(
    read: Served, prepared_phantom: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    n_items = len(read.desk.queue.items)
    for reader, verdict in (("anna", "cannot_tell"), ("berta", "cannot_tell")):
        client = read.client(reader)
        state = client.tree("GET", "/state.json")
        for number in range(n_items if reader == "anna" else 1):
            state = press(client, state, f"{reader}{number}", verdict=verdict, seconds=3)
    sources = {
        "schema": "review-sources-1",
        "questions": str(next((read.root / "drafts").glob("questions.jsonl"))),
        "studies": str(prepared_phantom / "data" / "studies"),
        "protocol": "openprotocol-1",
    }
    (read.root / "review-read.json").write_text(json.dumps(sources))
    assert export([f"out={read.root}"]) == 0
    lines = [json.loads(line) for line in (read.root / "ceiling.jsonl").read_text().splitlines()]
    anna, berta, everything = lines[:3]
    assert (anna["n_read"], anna["n_missing"]) == (n_items, 0)
    assert (berta["n_read"], berta["n_missing"], berta["seconds_median"]) == (1, n_items - 1, 3)
    assert (everything["subtask"], everything["n_pairs"], everything["same"]["value"]) == ("all", 1, 1)
    assert f"berta: 1/{n_items} read, {n_items - 1} missing" in capsys.readouterr().out
