"""A model behind HTTP reads reports the whole way: the verb, the stream, the store, two extractors."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.ray.conftest import Place
from tests.ray.processes import printed_by
from tests.ray.test_http import SERVED, in_the_background
from tests.unit.curation.questions.report_folders import lines, write_reports
from tests.unit.http_server import MODEL, Server, completion

pytestmark = [pytest.mark.ray, pytest.mark.full]

TEXTS = {
    "S1": "Indication: Mustermann, chest pain.\nFindings: LVEF 62 %. No late gadolinium enhancement.",
    "S2": "Findings: LVEF 35 %. No late gadolinium enhancement.",
}


async def extracts(server: Server, request: web.Request, asked: dict[str, Any]) -> web.StreamResponse:
    """A script in a model's place: right on enhancement, wrong on function, and it makes up an effusion."""
    text = asked["messages"][1]["content"][0]["text"]
    report = text.rpartition("BEGIN ")[2]
    stated = {}
    if "- enhancement:" in text:
        stated["enhancement"] = {"value": "Absent", "quote": "No late gadolinium enhancement"}
    if "- lv_systolic:" in text and (number := re.search(r"LVEF \d+ %", report)):
        stated["lv_systolic"] = {"value": "Normal", "quote": number[0]}
    if "- pericardium:" in text:
        stated["pericardium"] = {"value": "Small", "quote": "small pericardial effusion"}
    names = re.findall(r"^- (\w+): .* Value: (a list|one) of", text, re.MULTILINE)
    empty = {name: {"quote": "", "value": [] if kind == "a list" else "not stated"} for name, kind in names}
    message = {"role": "assistant", "content": json.dumps({**empty, **stated})}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return web.json_response(completion(asked, choices=[choice]))


def run(root: Path, *words: str) -> str:
    return printed_by([sys.executable, "-m", "cardiolens.questions", *words], root)


def test_two_extractors_the_whole_way(tmp_path: Path) -> None:
    words = write_reports(tmp_path, TEXTS)
    server = Server(lambda number, body: True, extracts)
    with in_the_background(server) as (url,):
        entry = SERVED.format(name="scripted", url=url, model=MODEL, more="dialect: vllm")
        Place(tmp_path, tmp_path).write_model("scripted", entry)
        printed = run(tmp_path, *words, "model=scripted")
        asked = len(server.seen)
        again = run(tmp_path, *words, "model=scripted")
        assert len(server.seen) == asked, "the store answers"
    assert "Mustermann" not in printed + again
    bodies = [json.loads(body) for _, body in server.seen]
    assert all("json" in body["structured_outputs"] and body["temperature"] == 0 for body in bodies)
    made = {(one["study"], one["subtask"]): one for one in lines(tmp_path / "out" / "questions.jsonl")}
    marks = {place: one["verification"]["drafted_by"] for place, one in made.items()}
    both = dict.fromkeys([("S1", "C10"), ("S1", "L01"), ("S2", "L01")], "both")
    assert marks == both | {("S2", "C10"): "rules"}
    rejects = lines(tmp_path / "out" / "rejects.jsonl")
    lost = {(one["study_id"], one["subtask"], one["reason"]) for one in rejects}
    assert lost >= {("S2", "C10", "number_against_words"), ("S1", "C19", "not_quoted")}


def test_a_simulated_reader_is_no_second_opinion(tmp_path: Path) -> None:
    words = write_reports(tmp_path, TEXTS)
    run(tmp_path, *words, "model=constant")
    made = lines(tmp_path / "out" / "questions.jsonl")
    assert made
    assert {one["verification"]["queue"] for one in made} == {"full"}
    reasons = {one["reason"] for one in lines(tmp_path / "out" / "rejects.jsonl") if one["stage"] == 2}
    assert reasons == {"no_json"}
