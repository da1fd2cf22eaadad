"""docs/guides/hospital.md: its commands run in order, and simulated people do what is done on its pages."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from cardiolens.storage import schemas, tables
from tests.ray.processes import printed_by

pytestmark = pytest.mark.ray
ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "guides" / "hospital.md"
BLOCKS = re.findall(r"^```sh ?([^\n]*)\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
MOST_BYTES = 3_000_000  # of the export
ONE_IN = 20  # the second person corrects one draft in so many; one in seven gives the batch too low a kappa


def ask(link: str, path: str, sent: Any = None) -> Any:
    """What a page answers to a request of a browser."""
    own = urlsplit(link)
    connection = HTTPConnection(own.netloc, timeout=600)
    headers = {"Origin": f"http://{own.netloc}", "Content-Type": "application/json"}
    method, body = ("GET", None) if sent is None else ("POST", json.dumps(sent))
    with closing(connection):
        connection.request(method, f"{own.path}{path}", body, headers)
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        return json.loads(answer.read())


def confirm(links: dict[str, str]) -> None:
    """Accept every proposal, as Enter does."""
    (link,) = links.values()
    for study in ask(link, "studies.json")["studies"]:
        stacks = {
            one["stack"]: {
                **{name: one[name] for name in ("sequence", "view", "along_normal")},
                **{"status": "confirmed", "display": one["entry"]["display_transform"]},
            }
            for one in study["proposals"]
            if one["status"] == "waits"
        }
        if stacks:
            change = {"study_id": study["study_id"], "revision": study["revision"], "stacks": stacks}
            assert "error" not in ask(link, "decide", change)


def review(links: dict[str, str]) -> None:
    """Two people who cannot read accept every draft, but one corrects some; the third accepts the draft."""
    for name, link in links.items():
        state, pressed = ask(link, "state.json"), 0
        while (item := state["item"]) is not None:
            said: dict[str, Any] = {"verdict": "accept"}
            if name == "berta" and pressed % ONE_IN == ONE_IN - 1:
                other = next(one["key"] for one in item["options"] if [one["key"]] != item["proposal"])
                said = {"verdict": "correct", "answer": [other]}
            pressed += 1
            decision = {"id": f"{name}-{pressed:012d}", "qa_id": item["qa_id"], "item": item["item"], **said}
            state = ask(link, "decide", decision)
            assert "error" not in state
        assert pressed


PEOPLE: dict[str, Callable[[dict[str, str]], None]] = {"confirm": confirm, "review": review}


def visit(command: str, folder: Path, environment: dict[str, str], people: Callable[..., None]) -> None:
    """Serve a page meanwhile, and end it by Ctrl-C."""
    # Tests that run in the background of a script ignore SIGINT, and so would what they start.
    heard = ["env", "--default-signal=INT", "bash", "-ec", f"exec {command}"]
    process = subprocess.Popen(heard, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        printed = ""
        while "Ctrl-C" not in printed:
            line = process.stdout.readline()
            assert line, printed
            printed += line
        people(dict(re.findall(r"^(\w+)[^:\n]*: (http\S+)", printed, re.M)))
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=600)


def test_from_a_hospitals_export_to_a_swept_benchmark(tmp_path: Path) -> None:
    assert (ROOT / "examples" / "hospital" / "export.zip").stat().st_size <= MOST_BYTES
    own = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "CARDIOLENS": str(ROOT)}
    own |= {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    for title, commands in BLOCKS:
        if name := title.removeprefix('title="').removesuffix('"'):
            visit(commands, tmp_path, {**os.environ, **own}, PEOPLE[name])
            continue
        printed_by(["bash", "-ec", commands], tmp_path, **own)
    manifests = [json.loads(path.read_text()) for path in tmp_path.glob("data/studies/*/study.json")]
    assert [len(manifest["volumes"]) for manifest in manifests] == [4] * 6, "what waited was confirmed"
    lines = [json.loads(line) for line in (tmp_path / "ourcmr" / "questions.jsonl").read_text().splitlines()]
    assert len(lines) > 50
    assert {line["verification"]["status"] for line in lines} == {"verified"}
    (run,) = (tmp_path / "outputs").iterdir()
    verdicts = tables.read(run / "verdicts", schemas.VERDICTS, ("arm_id", "correct")).to_pylist()
    oracle = [row["correct"] for row in verdicts if row["arm_id"].startswith("oracle")]
    assert all(oracle)
    assert len(oracle) == 2 * len(lines)
    assert (run / "index.html").exists()
    links = [json.loads(line) for line in (tmp_path / "safe" / "links.jsonl").read_text().splitlines()]
    leads = ("study_id", "patient_id", "patient", "accession")
    named = {str(one[name]) for one in links for name in leads if one.get(name)}
    released = b"".join(path.read_bytes() for path in (tmp_path / "ourcmr").rglob("*.json*"))
    assert named
    assert not [one for one in named if one.encode() in released], "ids lead nowhere"
