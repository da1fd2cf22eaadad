"""The one-file reader of task folders: it reads every labelled reply as a sweep does."""

import ast
import runpy
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bench.replies import SETS, reading_of, shared_replies, written_replies
from cardiolens.curation.release.make_tasks import task_module


@pytest.fixture(scope="module")
def one_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("answers") / "cardiolens_task.py"
    path.write_text(task_module(), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def functions(one_file: Path) -> dict[str, Any]:
    return runpy.run_path(str(one_file))


def test_no_name_of_one_module_hides_that_of_another(one_file: Path) -> None:
    names = Counter(
        name.id if isinstance(name, ast.Name) else node.name
        for node in ast.parse(one_file.read_text(encoding="utf-8")).body
        for name in (node.targets if isinstance(node, ast.Assign) else [node])
        if isinstance(name, ast.Name | ast.FunctionDef | ast.ClassDef)
    )
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize("name", [*SETS, "shared"])
def test_a_labelled_reply_is_read_as_in_a_sweep(name: str, functions: dict[str, Any]) -> None:
    for reply in shared_replies() if name == "shared" else written_replies(name):
        ending = "length" if reply.cut else "stop"
        reading = functions["read_reply"](
            reply.text, reply.options, several=reply.several, finish_reason=ending
        )
        expected = reading_of(reply)
        assert (reading.status, reading.answers) == (expected.status, expected.answers), reply


def test_only_exactly_the_right_options_are_right(functions: dict[str, Any]) -> None:
    options = [{"key": key, "text": f"Segment {key}"} for key in "ABC"]
    row = {"options": options, "answer_type": "multi", "answer": ["A", "C"]}
    replies = ("ANSWER: C, A", "ANSWER: A", "ANSWER: A, B", "no", "I think that A and C fit.")
    assert [functions["is_correct"](reply, row) for reply in replies] == [True, False, False, False, False]
    assert functions["target"](row) == "A, C"
    assert functions["process_results"](row, ["ANSWER: A, C"]) == {"accuracy": 1.0}
