"""The task folder of a release in the real lmms-eval: the same replies score as in a sweep of ours."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cardiolens.config.conf_names import released_options
from cardiolens.config.dataset import Windows
from cardiolens.config.sweep import SweepSpec
from cardiolens.curation.release.harness.make_tasks import make_tasks
from cardiolens.storage import schemas, tables
from cardiolens.study.cohort import Cohort, write_cohort
from cardiolens.study.group import prepare_group
from tests.unit import small_cohort
from tests.unit.curation.release.released_phantoms import release_phantoms

TASKS = ["ours_dev", "ours_test_b"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release with reports, and task folders of it."""
    folder = tmp_path_factory.mktemp("harness")
    release_phantoms(folder, "references=true")
    assert make_tasks([f"harness={folder}/ours", f"out={folder}/tasks"]) == 0
    return folder


def sweep_of(release: Path, root: Path) -> SweepSpec:
    """A sweep of a release as its receivers begin it: clinical frames, 16, readers that look at none."""
    dataset = released_options(release)
    readers = (small_cohort.reader("oracle"), small_cohort.reader("uniform"))
    return small_cohort.sweep_spec(root, *readers, dataset=dataset, budget=[16])


def prepared(spec: SweepSpec) -> None:
    folders = sorted(spec.dataset.studies.iterdir())
    outcomes = prepare_group(spec.store, "part-0.parquet", folders, Windows(), strict=True)
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
