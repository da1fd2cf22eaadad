"""Exports, as dataset or Inspect logs, hold each verdict with its request, reply and arm, nothing private."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pyarrow.dataset as ds
import pytest
import yaml
from page_run import finished, small_spec
from small_cohort import reader

from cardiolens.commands.export import main
from cardiolens.show.export.dataset_export import answers_of, answers_schema, write_dataset
from cardiolens.show.export.inspect_logs import log_of, write_inspect_logs
from cardiolens.show.notebook.run import read_run
from cardiolens.show.page.page_data import read_header
from cardiolens.storage import schemas, tables
from cardiolens.storage.places import Run

PATIENTS = 2


@pytest.fixture(scope="module")
def run(root: Path) -> Run:
    return finished(small_spec(root, "dataset", model=[reader("noisy", error=0.3), reader("oracle")]))


@pytest.fixture(scope="module")
def folder(run: Run) -> Path:
    return write_dataset(run, patient_ids=False)


def test_every_verdict_stands_there_once_with_what_was_asked_and_said(run: Run, folder: Path) -> None:
    rows = ds.dataset(folder / "answers", partitioning="hive").to_table().to_pylist()
    verdicts = tables.read(run.verdicts, schemas.VERDICTS).to_pylist()
    key = ("arm_id", "qa_id", "channel")
    kept = {tuple(row[name] for name in key): row for row in rows}
    assert len(kept) == len(rows) == len(verdicts)
    whole = read_run(run.root)
    asked = {(row["arm_id"], row["qa_id"]): row for row in whole.requests.to_pylist()}
    said = {row["request_key"]: row["text"] for row in whole.completions.to_pylist()}
    for verdict in verdicts:
        row = kept[tuple(verdict[name] for name in key)]
        for name in ("parsed", "gold", "correct", "status", "rule", "study_id"):
            assert row[name] == verdict[name]
        assert {one["name"]: one["value"] for one in row["counts"]} == dict(verdict["counts"] or [])
        request = asked[verdict["arm_id"], verdict["qa_id"]]
        assert (row["prompt_text"], row["frames"]) == (request["prompt"], request["frames"])
        assert row["arm_id"].startswith(f"{row['model']}-{row['selector']}-{row['budget']}")
        assert row["reply"] == said[verdict["request_key"]] or row["subtask"].startswith("R-")


def test_no_patient_and_no_word_of_a_report_is_in_it(run: Run, folder: Path) -> None:
    text = ds.dataset(folder / "answers", partitioning="hive").to_table()
    assert "patient_id" not in text.column_names
    store = read_run(run.root)
    reports = [json.loads(one) for one in store.questions["reference"].to_pylist() if one]
    replies = "\n".join(filter(None, text["reply"].to_pylist()))
    assert reports
    assert "withheld" in replies
    assert not any(json.dumps(one["findings"])[1:-1] in replies for one in reports)
    assert "patient_id" in answers_schema(patient_ids=True).names


def test_pandas_opens_it_in_one_line_and_the_card_names_every_column(folder: Path) -> None:
    frame = pd.read_parquet(folder / "answers")
    card = (folder / "README.md").read_text()
    assert set(frame["model"]) == {"noisy", "oracle"}
    assert all(f"| `{name}` |" in card for name in frame.columns)
    head = yaml.safe_load(card.split("---")[1])
    assert f"{len(frame):,} judged answers of 2 models" in card
    for config in head["configs"]:
        assert list(folder.glob(config["data_files"]))


def test_every_question_of_every_arm_is_a_sample_with_its_verdict(run: Run) -> None:
    verdicts = tables.read(run.verdicts, schemas.VERDICTS).to_pylist()
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
        assert (value, target) == ("C" if row["correct"] else "I", row["gold"])
        assert answer == ", ".join(row["parsed"] or [])


def test_what_was_not_judged_is_noted_so_whatever_is_counted_of_it(run: Run) -> None:
    header = read_header(run, [run])
    (first, *_), *_ = (
        part.to_pylist() for part in answers_of(run, header, header.arms[:1], patient_ids=False)
    )
    missing = dict.fromkeys(("correct", "reply", "parsed", "parse_status")) | {"status": "missing"}
    row = first | missing | {"counts": [{"name": "letters", "value": 3.0}]}  # of options with gaps
    log = log_of(header, header.arms[0], [row], datetime.now(UTC))
    (sample,) = log["samples"]
    assert [score["value"] for score in sample["scores"].values()] == ["N"]
    assert (log["results"]["completed_samples"], log["results"]["scores"][0]["scored_samples"]) == (0, 0)


def test_a_name_of_a_log_begins_with_its_time_as_inspect_lists_them(run: Run) -> None:
    names = [path.name for path in Path(write_inspect_logs(run, patient_ids=False)).iterdir()]
    assert len(names) == 4
    assert all(name[4] == "-" and name[10] == "T" and name.endswith(".json") for name in names)


def test_the_verb_writes_the_format_that_is_named_and_names_the_others(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, code in (["format=arrow"], 0), (["format=parquet"], 2), (["format=arrow", "format=files"], 2):
        monkeypatch.setattr(sys, "argv", ["export", f"run={run.root}", *words])
        assert main() == code
        out, err = capsys.readouterr()
        assert (str(run.root / "export" / "dataset") in out) == (code == 0)
        assert err.startswith("error: format") == (code == 2)
