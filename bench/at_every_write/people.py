"""Simulated people at the pages of `review` and `confirm`, who count the decisions that were acknowledged."""

import json
import os
import re
import signal
import time
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

_START_SECONDS = 60.0
_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+\S*")
_DECISIONS = 6  # of each person


class _GoneError(Exception):
    """The server has ended."""


class _Page:
    """A page on loopback, as a browser talks to it."""

    def __init__(self, address: str) -> None:
        url = urlsplit(address)
        self._own = url.netloc
        self.prefix = url.path.rstrip("/")

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> tuple[int, Any]:
        """Return status and JSON; _GoneError if nobody answers."""
        headers = {"Origin": f"http://{self._own}", "Content-Type": "application/json"}
        connection = HTTPConnection(self._own, timeout=30)
        try:
            connection.request(
                method, f"{self.prefix}{path}", None if body is None else json.dumps(body), headers
            )
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, HTTPException):
            raise _GoneError from None
        finally:
            connection.close()
        told = json.loads(content) if content[:1] in (b"{", b"[") else content.decode(errors="replace")
        return answer.status, told


def _page(child: int, place: Path) -> _Page:
    """Wait for the address that a server prints; _GoneError if it ends before."""
    printed, until = place.parent / f"{place.name}.printed", time.monotonic() + _START_SECONDS
    while time.monotonic() < until:
        if printed.exists() and (found := _ADDRESS.search(printed.read_text(errors="replace"))):
            return _Page(found[0])
        if not _runs(child):
            raise _GoneError
        time.sleep(0.02)
    raise TimeoutError("a server did not start")


def _runs(child: int) -> bool:
    try:
        state = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def _end(child: int) -> None:
    if _runs(child):
        os.kill(child, signal.SIGINT)


def decide_on_questions(child: int, place: Path) -> int:
    """Have each person decide on some items; return the number of acknowledged decisions."""
    kept = 0
    try:
        page = _page(child, place)
        links = json.loads((place / "review" / "links.json").read_text())["people"]
        for name, link in links.items():
            page.prefix = f"/{link['token']}"
            state = page.ask("GET", "/state.json")[1]
            mine = _decided(place, name)
            while mine < _DECISIONS and (item := state.get("item")) is not None:
                decision = {"id": f"{name}-{mine:012d}", "qa_id": item["qa_id"], "item": item["item"]}
                status, state = page.ask("POST", "/decide", {**decision, "verdict": "accept"})
                if status != 200 or "error" in state:
                    break
                mine += 1
                kept += 1
    except _GoneError:
        return kept
    finally:
        _end(child)
    return kept


def _decided(place: Path, name: str) -> int:
    path = place / "review" / "reviews.jsonl"
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return sum(
        line["reader"] == name and line["event"] == "decided"
        for line in map(json.loads, filter(None, lines))
        if "reader" in line
    )


def decide_on_imports(child: int, place: Path) -> int:
    """Confirm what the import proposes, stack by stack; return the number of acknowledged decisions."""
    kept = 0
    try:
        page = _page(child, place)
        tree = page.ask("GET", "/studies.json")[1]
        for study in tree["studies"]:
            revision = study["revision"]
            stacks = [stack["stack"] for stack in study["proposals"]][:_DECISIONS]
            open_stacks = [stack for stack in stacks if stack not in study["choices"]]
            for stack in open_stacks:
                change = {"study_id": study["study_id"], "revision": revision}
                status, state = page.ask(
                    "POST", "/decide", {**change, "stacks": {stack: {"status": "excluded"}}}
                )
                if status != 200 or "error" in state:
                    break
                revision = state["revision"]
                kept += 1
    except _GoneError:
        return kept
    finally:
        _end(child)
    return kept


def read_replies(child: int, place: Path) -> int:
    """Read replies of an audit's sample, none of which names an option; return the acknowledged readings."""
    kept = 0
    try:
        page = _page(child, place)
        state = page.ask("GET", "/state.json")[1]
        while (done := state.get("done", _DECISIONS)) < _DECISIONS and (
            item := state.get("item")
        ) is not None:
            decision = {"id": f"auditor-{done:012d}", "qa_id": item["qa_id"], "item": item["item"]}
            status, state = page.ask("POST", "/decide", {**decision, "verdict": "cannot_tell"})
            if status != 200 or "error" in state:
                break
            kept += 1
    except _GoneError:
        return kept
    finally:
        _end(child)
    return kept
