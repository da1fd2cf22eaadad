"""Task folders of a release: what they hold and refuse; replies are read and scored as in a sweep."""

import ast
import json
import os
import runpy
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from bench.replies import SETS, reading_of, shared_replies, written_replies
from cardiolens.base.errors import InputError
from cardiolens.config.conf_names import released_options
from cardiolens.config.dataset import Windows
from cardiolens.config.sweep import SweepSpec
from cardiolens.curation.release.make_tasks import task_module
from cardiolens.storage import schemas, tables
from cardiolens.study.cohort import Cohort, write_cohort
from cardiolens.study.group import prepare_group
from tests.unit import small_cohort
from tests.unit.curation.release.released_phantoms import release_phantoms
from tests.unit.given_words import tasks_of


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tasks")
    release_phantoms(folder, "references=true")
    assert tasks_of([f"harness={folder}/ours", f"out={folder}/tasks"]) == 0
    return folder


@pytest.mark.full
def test_what_is_handed_out_imports_nothing_of_ours(root: Path) -> None:
    for path in (root / "tasks").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
            assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names, path


def changed(root: Path) -> None:
    path = root / "ours" / "questions.jsonl"
    path.write_text(path.read_text().replace('"answer": ["A"]', '"answer": ["B"]', 1))


def indexed(release: Path, name: str, text: str) -> None:
    """Change a file and the index with it, as who makes a release can."""
    (release / name).write_text(text)
    index = json.loads((release / "release.json").read_text())
    index["files"][name] = {"bytes": len(text.encode()), "sha256": sha256(text.encode()).hexdigest()}
    (release / "release.json").write_text(json.dumps(index))


def cohort_elsewhere(root: Path) -> None:
    path = next((root / "ours" / "studies").glob("*/study.json"))
    told = json.loads(path.read_text()) | {"cohort": ["../../../t"]}
    indexed(root / "ours", path.relative_to(root / "ours").as_posix(), json.dumps(told))


def canary_of_yaml(root: Path) -> None:
    index = root / "ours" / "release.json"
    told = json.loads(index.read_text())
    told["canary"] += "\ndoc_to_text: !function os.system"
    index.write_text(json.dumps(told))


def question_of(root: Path, **more: str) -> None:
    lines = [json.loads(line) for line in (root / "ours" / "questions.jsonl").read_text().splitlines()]
    lines[0] |= more
    indexed(root / "ours", "questions.jsonl", "".join(json.dumps(line) + "\n" for line in lines))


def mark_of_a_frame(root: Path) -> None:
    question_of(root, question="How large is <image> it?")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (changed, r"harness=.*questions.jsonl: is not what was released"),
        (cohort_elsewhere, "cohort '../../../t' is no name"),
        (canary_of_yaml, "the canary in its release.json is none"),
        (mark_of_a_frame, "holds <image>, which marks the place"),
    ],
)
def test_what_cannot_be_made_is_refused(damage: Callable[[Path], None], said: str, copied: Path) -> None:
    damage(copied)
    with pytest.raises(InputError, match=said):
        tasks_of([f"harness={copied}/ours", f"out={copied}/t"])
    assert not (copied / "t").exists()


@pytest.fixture
def copied(root: Path, tmp_path: Path) -> Path:
    shutil.copytree(root / "ours", tmp_path / "ours")
    return tmp_path


TASKS = ["ours_dev", "ours_test_b"]


def sweep_of(release: Path, root: Path) -> SweepSpec:
    """A sweep of a release as its receivers begin it: clinical frames, 16, readers that look at none."""
    dataset = released_options(release)
    readers = (small_cohort.reader("oracle"), small_cohort.reader("uniform"))
    return small_cohort.sweep_spec(root, *readers, dataset=dataset, budget=[16])


def prepared(spec: SweepSpec) -> None:
    folders = sorted(spec.dataset.studies.iterdir())
    outcomes = prepare_group(spec.store, "part-0.parquet", folders, Windows())
    records = {outcome.name: outcome.record for outcome in outcomes}
    write_cohort(spec.store, Cohort(window_pct=(1, 99), studies=records, failed={}))


def swept(release: Path, root: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """Reply, verdict and prompt of each choice question, by reader."""
    spec = sweep_of(release, root)
    prepared(spec)
    planned, _ = small_cohort.swept(spec)
    arms = {arm.arm_id: arm.model.name for arm in planned.arms}
    told: dict[str, dict[str, dict[str, Any]]] = {"oracle": {}, "uniform": {}}
    prompts, texts = {}, {}
    for model in told:
        key = planned.identities[model].model_key
        for row in tables.read(planned.run.requests(model), schemas.REQUESTS).to_pylist():
            prompts[row["arm_id"], row["qa_id"]] = row["system"], row["prompt"]
        for row in tables.read(planned.store.completions(key), schemas.COMPLETIONS).to_pylist():
            texts[row["request_key"]] = row["text"]
    for row in tables.read(planned.run.verdicts, schemas.VERDICTS).to_pylist():
        if row["channel"] == "answer":
            system, prompt = prompts[row["arm_id"], row["qa_id"]]
            shown = {"system": system, "prompt": prompt, "reply": texts[row["request_key"]]}
            told[arms[row["arm_id"]]][row["qa_id"]] = shown | {"correct": row["correct"]}
    return told


def asked(root: Path, replies: dict[str, str], kind: str) -> dict[str, Any]:
    """What lmms-eval makes of replies, in a process that has no network."""
    (root / "replies.json").write_text(json.dumps(replies))
    script = Path(__file__).with_name("ask_lmms_eval.py")
    command = [sys.executable, script, root / "tasks", root / "replies.json", kind, *TASKS]
    quiet = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(root / "hub"), "TQDM_DISABLE": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=root, env={**os.environ, **quiet}
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.long
def test_the_same_replies_score_the_same_as_in_a_sweep(root: Path) -> None:
    ours = swept(root / "ours", root)
    for model, kind in (("oracle", "simple"), ("uniform", "chat")):
        rows = ours[model]
        theirs = asked(root, {qa_id: row["reply"] for qa_id, row in rows.items()}, kind)
        right = {qa_id: value for task in TASKS for qa_id, value in theirs[task]["right"].items()}
        assert right == {qa_id: row["correct"] for qa_id, row in rows.items()}
        for task in TASKS:
            own = theirs[task]["right"]
            assert theirs[task]["accuracy"] - sum(rows[qa_id]["correct"] for qa_id in own) / len(own) == 0
        n_right = sum(right.values())
        assert n_right == len(rows) if model == "oracle" else 0 < n_right < len(rows)
        words = theirs[TASKS[0]]["asked"]
        for qa_id, row in rows.items():  # the same words, with as many frames
            place = "<image>" if kind == "simple" else "|"
            mine = (f"{row['system']}\n\n" if kind == "simple" else f"{row['system']}|") + row["prompt"]
            assert words[qa_id]["text"] == mine.replace(schemas.FRAME, place)
            assert words[qa_id]["images"] == row["prompt"].count(schemas.FRAME) > 0


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The one-file reader of replies."""
    path = tmp_path_factory.mktemp("answers") / "cardiolens_task.py"
    path.write_text(task_module(), encoding="utf-8")
    return runpy.run_path(str(path))


def test_no_name_of_one_module_hides_that_of_another() -> None:
    names = Counter(
        name.id if isinstance(name, ast.Name) else node.name
        for node in ast.parse(task_module()).body
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
