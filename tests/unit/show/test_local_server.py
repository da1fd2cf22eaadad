"""The policy of pages on this machine, over real sockets; each of the three servers goes through it."""

import json
import re
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pyarrow as pa
import pytest
from running_server import running

from cardiolens.base.errors import InputError
from cardiolens.config.sweep import SweepSpec
from cardiolens.curation.ingest.confirm_server import Desk, desk_server
from cardiolens.curation.ingest.decisions import Ledger
from cardiolens.curation.review import desk as review
from cardiolens.curation.review.desk import review_server
from cardiolens.curation.review.people import read_people
from cardiolens.show.local_server import (
    HOST,
    MOST_BYTES,
    LocalServer,
    Reply,
    Request,
    Site,
    json_reply,
    text_reply,
)
from cardiolens.show.page.case_viewer.item_sources import Sources
from cardiolens.show.page.case_viewer.viewer_server import Viewer, viewer_server
from cardiolens.show.page.page_data import Header
from cardiolens.storage.places import Run

PACKAGE = Path(__file__).resolve().parents[3] / "cardiolens"
LARGE = 32 << 20  # bytes, more than the buffers of a socket hold
HEADERS = {
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-resource-policy": "same-origin",
}
DIRECTIVES = ("default-src 'none'", "form-action 'none'", "base-uri 'none'", "frame-ancestors 'none'")


@dataclass
class Routes:
    """Routes that note each body that reaches them."""

    bodies: list[bytes] = field(default_factory=list)

    def read(self, request: Request) -> Reply | None:
        match request.parts:
            case [""]:
                return text_reply("html", f"<p>{request.query.get('words', '')}")
            case ["fault"]:
                raise ZeroDivisionError("of the page, with words that are nobody's")
            case ["large"]:
                return text_reply("js", "x" * LARGE)
            case _:
                return None

    def change(self, request: Request) -> Reply | None:
        self.bodies.append(request.body)
        return json_reply({"kept": len(self.bodies)})


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    content: bytes


@pytest.fixture
def routes() -> Routes:
    return Routes()


@pytest.fixture
def server(routes: Routes) -> Iterator[LocalServer]:
    with running(LocalServer(Site(routes.read, routes.change))) as server:
        yield server


def connect(server: LocalServer) -> socket.socket:
    return socket.create_connection((HOST, server.server_port), timeout=300)


def send(server: LocalServer, content: bytes) -> Answer:
    """Send bytes and read until the server closes."""
    with connect(server) as client:
        client.sendall(content)
        received = b""
        while part := client.recv(1 << 16):
            received += part
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return Answer(int(first.split()[1]), headers, body)


def request(
    server: LocalServer, method: str, path: str, *more: str, body: bytes = b"", **replaced: str
) -> bytes:
    """Bytes of a request as the server's own page sends it; an empty header is left out."""
    own = f"{HOST}:{server.server_port}"
    headers = {"Host": own, "Connection": "close"}
    if method == "POST":
        headers |= {"Origin": f"http://{own}", "Content-Type": "application/json"}
        headers |= {"Content-Length": str(len(body))}
    headers |= {name.replace("_", "-"): value for name, value in replaced.items()}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items() if value)]
    return "\r\n".join([*lines, *more, "", ""]).encode() + body


def root(server: LocalServer) -> str:
    return "/" + server.address.split("/", 3)[3]


def assert_policy(answer: Answer) -> None:
    assert HEADERS.items() <= answer.headers.items()
    assert set(DIRECTIVES) <= set(answer.headers["content-security-policy"].split("; "))


def test_the_page_itself_reads_and_changes(server: LocalServer, routes: Routes) -> None:
    answer = send(server, request(server, "GET", f"{root(server)}?words=1"))
    assert (answer.status, answer.content) == (200, b"<p>1")
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert_policy(answer)
    answer = send(server, request(server, "POST", root(server), body=b"{}"))
    assert (answer.status, json.loads(answer.content), routes.bodies) == (200, {"kept": 1}, [b"{}"])
    assert_policy(answer)


def test_a_fault_of_a_page_costs_one_answer(server: LocalServer, caplog: pytest.LogCaptureFixture) -> None:
    answer = send(server, request(server, "GET", f"{root(server)}fault"))
    assert answer.status == 500
    assert b"nobody" not in answer.content
    assert_policy(answer)
    assert "a request of the page failed" in caplog.text
    assert_alive(server)


def test_it_listens_on_loopback_alone_and_names_a_port_that_is_taken(server: LocalServer) -> None:
    assert server._socket.getsockname()[0] == "127.0.0.1"
    with pytest.raises(InputError, match=f"port={server.server_port}"):
        LocalServer(server.site, server.server_port)


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("host", ["", "evil.example", "evil.example:{port}", HOST, "127.0.0.1:{port}0"])
def test_a_foreign_host_gets_nothing(server: LocalServer, routes: Routes, method: str, host: str) -> None:
    name = host.format(port=server.server_port)
    answer = send(server, request(server, method, root(server), Host=name, Origin=f"http://{name}"))
    assert answer.status == (404 if host else 400)
    assert routes.bodies == []


def test_of_two_hosts_none_is_believed(server: LocalServer) -> None:
    assert send(server, request(server, "GET", root(server), "Host: evil.example")).status == 400


@pytest.mark.parametrize(
    "origin", ["", "null", "http://evil.example", "http://localhost:{port}", "https://127.0.0.1:{port}"]
)
def test_a_foreign_origin_changes_nothing(server: LocalServer, routes: Routes, origin: str) -> None:
    name = origin.format(port=server.server_port)
    assert send(server, request(server, "POST", root(server), body=b"{}", Origin=name)).status == 404
    assert routes.bodies == []


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_without_the_token_nothing_stands_anywhere(server: LocalServer, routes: Routes, method: str) -> None:
    token = root(server)
    for path in ("/", "/large", "/wrong/", f"{token[:-2]}/", f"/x{token}", "/%ff/"):
        assert send(server, request(server, method, path)).status == 404, path
    assert routes.bodies == []


def test_a_site_that_is_read_only_takes_no_post(routes: Routes) -> None:
    with running(LocalServer(Site(routes.read))) as server:
        assert send(server, request(server, "POST", root(server), body=b"{}")).status == 501


def test_a_body_may_be_as_large_as_the_limit_and_no_larger(server: LocalServer, routes: Routes) -> None:
    assert send(server, request(server, "POST", root(server), body=b" " * MOST_BYTES)).status == 200
    assert send(server, request(server, "POST", root(server), body=b" " * (MOST_BYTES + 1))).status == 413
    assert [len(body) for body in routes.bodies] == [MOST_BYTES]


@pytest.mark.full
@pytest.mark.parametrize(
    ("length", "status"),
    [
        *(("9" * 5000, 400), (str(MOST_BYTES + 1), 413), ("-1", 400), ("+1", 400), ("1_0", 400), ("", 400)),
        *(("two", 400), ("1.0", 400), ("\u00b2", 400), ("\u0662", 400), ("0x1", 400)),
    ],
)
def test_a_length_that_is_none_is_refused(
    server: LocalServer, routes: Routes, capfd: pytest.CaptureFixture[str], length: str, status: int
) -> None:
    answer = send(server, request(server, "POST", root(server), Content_Length=length))
    assert answer.status == status
    assert routes.bodies == []
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("more", ["Content-Length: 3", "Transfer-Encoding: chunked"])
def test_a_body_of_two_lengths_is_refused(server: LocalServer, routes: Routes, more: str) -> None:
    assert send(server, request(server, "POST", root(server), more, body=b"{}")).status == 400
    assert routes.bodies == []


@pytest.mark.parametrize("kind", ["", "text/plain", "application/x-www-form-urlencoded"])
def test_what_a_form_can_send_is_refused(server: LocalServer, routes: Routes, kind: str) -> None:
    assert send(server, request(server, "POST", root(server), body=b"{}", Content_Type=kind)).status == 400
    assert routes.bodies == []


@pytest.mark.parametrize(
    "line",
    [
        "GET /",
        "<b>",
        "GET / HTTP/9",
        "GET / HTTP/1.1 x",
        "GET /" + "x" * 70_000,
    ],
)
def test_a_malformed_request_is_answered_in_plain_text(server: LocalServer, line: str) -> None:
    answer = send(server, f"{line}\r\n\r\n".encode())
    assert 400 <= answer.status < 600
    assert answer.headers["content-type"].startswith("text/plain")
    assert_alive(server)


@pytest.mark.parametrize("method", ["HEAD", "PUT"])
def test_only_reading_and_posting_are_answered(server: LocalServer, method: str) -> None:
    assert send(server, request(server, method, root(server))).status == 501


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
@pytest.mark.parametrize("reset", [False, True])
def test_a_client_that_hangs_up_in_its_request_changes_nothing(
    server: LocalServer, routes: Routes, capfd: pytest.CaptureFixture[str], share: float, reset: bool
) -> None:
    content = request(server, "POST", root(server), body=b"[" + b" " * 5000 + b"]")
    with connect(server) as client:
        client.sendall(content[: int(len(content) * share)])
        hang_up(client, reset)
    assert_alive(server)
    assert routes.bodies == []
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("reset", [False, True])
def test_a_client_that_hangs_up_in_its_reply_leaves_no_trace(
    server: LocalServer, capfd: pytest.CaptureFixture[str], reset: bool
) -> None:
    with connect(server) as client:
        client.sendall(request(server, "GET", f"{root(server)}large"))
        assert client.recv(1000).startswith(b"HTTP/1.1 200")
        hang_up(client, reset)
    assert_alive(server)
    assert capfd.readouterr().err == ""


def hang_up(client: socket.socket, reset: bool) -> None:
    if reset:  # closed at once, which the server meets as an error of its connection
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    client.close()


def assert_alive(server: LocalServer) -> None:
    """The server still answers."""
    assert send(server, request(server, "GET", root(server))).status == 200


def confirm(folder: Path) -> LocalServer:
    return desk_server(Desk(folder, {}, cast(Ledger, None)))


def reviewed(folder: Path) -> LocalServer:
    return review_server(cast(review.Desk, None), read_people(folder, ("anna",), None))


def view(folder: Path) -> LocalServer:
    dataset = SimpleNamespace(studies=folder, roots=(), protocol="openprotocol-1")
    spec = SimpleNamespace(store=folder, dataset=dataset, model=())
    questions = pa.table({name: ["a"] for name in ("study_id", "subtask", "qa_id")})
    header = Header("run", (), (cast(SweepSpec, spec),), (), ())
    return viewer_server(Viewer(Sources(Run(folder), header, questions, {})))


@pytest.mark.parametrize(
    ("make", "change", "token"),
    [(confirm, "decide", True), (reviewed, "decide", False), (view, None, True)],
    ids=["confirm", "review", "view"],
)
def test_each_of_the_three_servers_goes_through_it(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    make: Callable[[Path], LocalServer],
    change: str | None,
    token: bool,
) -> None:
    with running(make(tmp_path)) as server:
        assert type(server) is LocalServer
        assert bool(server.site.token) == token
        page = send(server, request(server, "GET", root(server)))
        assert page.status == (200 if token else 404)  # links of a review are those of its people
        assert_policy(page)
        assert ("unsafe" in page.headers["content-security-policy"]) == (make is view)
        assert send(server, request(server, "GET", root(server), Host="evil.example")).status == 404
        for path in ("/", root(server)[:-1]) if token else ():
            assert send(server, request(server, "GET", path)).status == 404, path
        for path in ("frames/{}/a-0.png", "frames/0/a-{}.png", "sheets/{}/0.png", "sheets/0/{}.png"):
            answer = send(server, request(server, "GET", root(server) + path.format("9" * 5000)))
            assert answer.status == 404
        post = f"{root(server)}{change or ''}"
        long = send(server, request(server, "POST", post, Content_Length="9" * 5000))
        foreign = send(server, request(server, "POST", post, body=b"{}", Origin="http://evil.example"))
        assert (long.status, foreign.status) == (400, 404 if change else 501)
        sent = send(server, request(server, "POST", post, body=b"{}"))
        assert sent.status == (501 if change is None else 400 if token else 404)
    assert capfd.readouterr().err == ""


def test_no_other_module_serves() -> None:
    servers = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if re.search(r"\bhttp\.server\b|\bsocketserver\b|\bweb\.Application\b", path.read_text())
    }
    assert servers == {"show/local_server.py"}
