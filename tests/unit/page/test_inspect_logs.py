"""Logs for Inspect: every question of every arm is a sample, with what was asked, said and judged."""

import json
from pathlib import Path

import pytest
from page_run import finished, small_spec
from small_cohort import make_cohort, reader

from cardiolens import tables
from cardiolens.page.inspect_logs import write_inspect_logs
from cardiolens.record.places import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    root = make_cohort(tmp_path_factory.mktemp("inspect"), 2)
    return finished(small_spec(root, "inspect", model=[reader("noisy", error=0.3), reader("oracle")]))


def test_every_question_of_every_arm_is_a_sample_with_its_verdict(run: Run) -> None:
    verdicts = tables.read(run.verdicts, tables.VERDICTS).to_pylist()
    told = {}
    for path in write_inspect_logs(run, patient_ids=False).iterdir():
        log = json.loads(path.read_text())
        arm = log["eval"]["metadata"]["arm_id"]
        assert log["results"]["total_samples"] == len(log["samples"]) == log["eval"]["dataset"]["samples"]
        for sample in log["samples"]:
            said = sample["output"]["choices"][0]["message"]["content"]
            assert sample["messages"][-1]["content"] == said
            assert "patient_id" not in sample["metadata"]
            for channel, score in sample["scores"].items():
                told[arm, sample["id"], channel] = score["value"], sample["target"], score["answer"]
        for score in log["results"]["scores"]:
            own = [
                one["scores"][score["name"]]["value"]
                for one in log["samples"]
                if score["name"] in one["scores"]
            ]
            share = own.count("C") / (own.count("C") + own.count("I"))
            assert score["metrics"]["accuracy"]["value"] == share
    assert len(told) == len(verdicts)
    for row in verdicts:
        value, target, answer = told[row["arm_id"], row["qa_id"], row["channel"]]
        assert (value, target) == ("C" if row["correct"] else "I", row["gold"]) or row["channel"] == "text"
        assert answer == ", ".join(row["parsed"] or [])


def test_a_name_of_a_log_begins_with_its_time_as_inspect_lists_them(run: Run) -> None:
    names = [path.name for path in Path(write_inspect_logs(run, patient_ids=False)).iterdir()]
    assert len(names) == 4
    assert all(name[4] == "-" and name[10] == "T" and name.endswith(".json") for name in names)
