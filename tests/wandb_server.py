"""A server that speaks the calls which W&B's public client makes, and keeps what arrives."""

import gzip
import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from tests.wandb_files import lasting

Mood = Literal["well", "slow", "refuses", "fails", "forgets", "babbles"]
ENTITY = "a-team"
_SLOW_S = 0.4
_VIEWER = {"id": "u", "entity": ENTITY, "username": "someone", "email": None, "flags": "{}"}
_ALWAYS: dict[str, dict[str, Any]] = {  # by the name of an operation
    "Viewer": {"viewer": _VIEWER | {"teams": {"edges": []}}},
    "ArtifactType": {"project": {"artifact": None}},
    "GetProjects": {"models": {"pageInfo": {"endCursor": None, "hasNextPage": False}, "edges": []}},
    "ProjectInternalId": {"project": {"id": "p", "internalId": "UHJvamVjdEludGVybmFsSWQ6MQ=="}},
}


@dataclass
class Bucket:
    """One run of W&B as a server holds it."""

    told: dict[str, Any] = field(default_factory=dict)  # last of each variable that the client gave
    config: dict[str, Any] = field(default_factory=dict)
    history: dict[int, str] = field(default_factory=dict)  # lines by their place
    summary: dict[str, Any] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    complete: bool = False

    @property
    def content(self) -> dict[str, Any]:
        """The same that `wandb_files.content` finds in the files of an offline run."""
        steps = [json.loads(self.history[at]) for at in sorted(self.history)]
        files = {f"files/{name}": held for name, held in self.files.items()}
        tables = {name: json.loads(files[name]) for name in files if "/media/table/" in name}
        pages = {name: sha256(files[name]).hexdigest() for name in files if "/media/html/" in name}
        return {
            "run_id": self.told["name"],
            "pages": pages,
            "project": self.told["project"],
            "run_group": self.told["groupName"],
            "job_type": self.told["jobType"],
            "display_name": self.told["displayName"],
            "host": self.told.get("host", "unnamed"),  # as an offline file says; a server is told nothing
            "tags": self.told.get("tags", []),
            "logged": lasting(self.config | self.summary),
            "steps": [lasting(step) for step in steps],
            "tables": tables,
        }


@dataclass
class Server:
    """What arrived, by id of the run; every call, and every byte of it."""

    mood: Mood
    url: str = ""
    buckets: dict[str, Bucket] = field(default_factory=dict)
    tables: dict[str, bytes] = field(default_factory=dict)  # files of artifacts
    calls: list[str] = field(default_factory=list)
    received: list[bytes] = field(default_factory=list)
    views: list[dict[str, Any]] = field(default_factory=list)  # saved workspaces

    @property
    def environment(self) -> dict[str, str]:
        """Variables with which W&B's client talks to this server and nobody else."""
        return {"WANDB_BASE_URL": self.url, "WANDB_API_KEY": "f" * 40, "WANDB_ERROR_REPORTING": "false"}

    def answered(self, name: str, given: dict[str, Any]) -> dict[str, Any]:
        """Data of one GraphQL operation."""
        if self.mood == "forgets":
            return {}
        operation = getattr(self, f"_{name}", None)
        return operation(given) if operation else _ALWAYS.get(name, {})

    def _RunResumeStatus(self, given: dict[str, Any]) -> dict[str, Any]:  # noqa: N802 - W&B's own names
        bucket = self.buckets.get(given["name"])
        held = bucket and {
            "id": given["name"],
            "name": given["name"],
            "summaryMetrics": json.dumps(bucket.summary),
            "displayName": bucket.told.get("displayName"),
            "logLineCount": 0,
            "historyLineCount": len(bucket.history),
            "eventsLineCount": 0,
            "historyTail": json.dumps([bucket.history[max(bucket.history)]] if bucket.history else []),
            "eventsTail": "[]",
            "config": json.dumps({name: {"value": value} for name, value in bucket.config.items()}),
            "tags": bucket.told.get("tags") or [],
            "notes": None,
            "wandbConfig": json.dumps({"t": 1}),
        }
        entity = {"id": "e", "name": ENTITY}
        return {"model": {"id": "p", "name": given["project"], "entity": entity, "bucket": held}}

    def _UpsertBucket(self, given: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        is_new = given["name"] not in self.buckets
        bucket = self.buckets.setdefault(given["name"], Bucket())
        bucket.told |= {name: value for name, value in given.items() if value is not None}
        bucket.config |= {
            name: one["value"]
            for name, one in json.loads(given.get("config") or "{}").items()
            if name != "_wandb"
        }
        said = {"id": given["name"], "name": given["name"], "displayName": bucket.told.get("displayName")}
        said |= {"description": "", "config": "{}", "sweepName": None, "historyLineCount": 0}
        said["project"] = {"id": "p", "name": given["project"], "entity": {"id": "e", "name": ENTITY}}
        return {"upsertBucket": {"bucket": said, "inserted": is_new}}

    def _CreateRunFiles(self, given: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        files = [
            {"name": name, "uploadUrl": f"{self.url}/run/{given['run']}/{name}"} for name in given["files"]
        ]
        return {"createRunFiles": {"runID": given["run"], "uploadHeaders": [], "files": files}}

    def _CreateArtifact(self, given: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        artifact = {"id": given["input"]["clientID"], "state": "PENDING"}
        return {"createArtifact": {"artifact": artifact | {"artifactSequence": {"latestArtifact": None}}}}

    def _CreateArtifactManifest(self, given: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        place = {"id": "f", "uploadUrl": f"{self.url}/manifest/{given['artifactID']}", "uploadHeaders": []}
        return {"createArtifactManifest": {"artifactManifest": {"id": "m", "file": place}}}

    def _UpdateArtifactManifest(self, given: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        place = {"id": "f", "uploadUrl": f"{self.url}/manifest/m", "uploadHeaders": []}
        return {"updateArtifactManifest": {"artifactManifest": {"id": "m", "file": place}}}

    def _CreateArtifactFiles(self, given: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        edges = []
        for one in given["input"]["artifactFiles"]:
            url = f"{self.url}/table/{one['artifactID']}/{one['name']}"
            node = {"storagePath": f"table/{one['name']}", "artifact": {"id": one["artifactID"]}}
            edges.append(
                {"node": node | {"uploadUrl": url, "uploadHeaders": [], "uploadMultipartUrls": None}}
            )
        return {"createArtifactFiles": {"files": {"edges": edges}}}

    def _CommitArtifact(self, given: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return {"commitArtifact": {"artifact": {"id": given["artifactID"], "digest": ""}}}

    def _UpsertView2(self, given: dict[str, Any]) -> dict[str, Any]:  # noqa: N802 - a workspace
        self.views.append({**given, "spec": json.loads(given["spec"])})
        return {"upsertView": {"view": {"id": "dmlldzox", "name": given["name"]}, "inserted": True}}

    def _upsertView(self, given: dict[str, Any]) -> dict[str, Any]:  # noqa: N802 - a report
        self.views.append({**given, "spec": json.loads(given["spec"])})
        view = {name: given[name] for name in ("type", "name", "displayName", "description", "spec")}
        project = {"id": "p", "name": given["projectName"], "entityName": given["entityName"]}
        return {"upsertView": {"view": {"id": "dmlldzoy", **view, "project": project}, "inserted": True}}

    def stream(self, run_id: str, said: dict[str, Any]) -> None:
        """Take in lines of a run's files, at their places."""
        bucket = self.buckets[run_id]
        for name, chunk in said.get("files", {}).items():
            if name == "wandb-history.jsonl":
                bucket.history |= dict(enumerate(chunk["content"], chunk["offset"]))
            elif name == "wandb-summary.json":
                bucket.summary = json.loads(chunk["content"][-1])
        bucket.complete |= bool(said.get("complete"))

    def keep(self, path: str, body: bytes) -> None:
        """Keep an uploaded file."""
        kind, owner, name = path.removeprefix("/").split("/", 2) if path.count("/") > 2 else (path, "", "")
        if kind == "run":
            self.buckets[owner].files[name] = body
        elif kind == "table":
            self.tables[name] = body


@contextmanager
def wandb_server(mood: Mood = "well") -> Iterator[Server]:
    """Serve on loopback until the block ends."""
    held = Server(mood)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            self.take(lambda _: {})

        def do_PUT(self) -> None:
            self.take(lambda body: held.keep(self.path, body) or {})

        def do_POST(self) -> None:
            if self.path == "/graphql":
                self.take(self.operation)
            elif found := re.fullmatch(r"/files/[^/]+/[^/]+/([^/]+)/file_stream", self.path):
                self.take(lambda body: held.stream(found[1], json.loads(body)) or {"exitcode": None})
            else:
                self.take(lambda _: {})

        def operation(self, body: bytes) -> dict[str, Any]:
            said = json.loads(body)
            name = said.get("operationName") or re.search(r"(?:query|mutation)\s+(\w+)", said["query"])[1]
            held.calls.append(name)
            return {"data": held.answered(name, said.get("variables") or {})}

        def take(self, answer: Any) -> None:
            body = self.body()
            held.received.append(self.path.encode() + b" " + body)
            if held.mood == "slow":
                time.sleep(_SLOW_S)
            if held.mood in ("refuses", "fails"):
                self.say(403 if held.mood == "refuses" else 500, b'{"errors": [{"message": "no"}]}')
            elif held.mood == "babbles":
                answer(body)
                self.say(200, b'{"data": [[["\\ud800', "text/html")
            else:
                self.say(200, json.dumps(answer(body)).encode())

        def body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") == "chunked":
                raw = b""
                while size := int(self.rfile.readline().strip() or b"0", 16):
                    raw += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
            else:
                raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            return gzip.decompress(raw) if self.headers.get("Content-Encoding") == "gzip" else raw

        def say(self, code: int, body: bytes, kind: str = "application/json") -> None:
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.handle_error = lambda *_: None  # type: ignore[method-assign] # clients that went away
        held.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield held
        server.shutdown()
