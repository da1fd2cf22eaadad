"""Report text read twice: the second reading stands beside the rules and changes nothing of theirs."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from page_run import finished, small_spec
from small_cohort import make_cohort

from cardiolens.config.steps import StatisticsSpec
from cardiolens.curation.questions.second_reading import Readings, ReportTexts, readings, texts_of
from cardiolens.curation.questions.statement import ReportStatement
from cardiolens.phantom.roster import catalogue
from cardiolens.storage import documents
from cardiolens.storage.places import Run
from cardiolens.storage.schemas import VERDICTS
from cardiolens.storage.tables import read

CATALOGUE = catalogue()
STATISTICS = StatisticsSpec(min_n=1, resamples=40, seed=7)
Items = list[dict[str, Any]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    root = make_cohort(tmp_path_factory.mktemp("reread"), 3)
    return finished(small_spec(root, "reread", control=["none"]))


@pytest.fixture(scope="module")
def told(run: Run) -> ReportTexts:
    return texts_of(run, documents.read_configuration(run), CATALOGUE)


def of_rules(told: ReportTexts) -> dict[str, Items]:
    """Findings of each text that say what the rules read."""
    by_field = {
        (one.sequence, one.field): one.id
        for one in CATALOGUE.subtasks.values()
        if one.answer_type != "report"
    }
    found = {}
    for number, row in zip(told.sections, told.verdicts.to_pylist(), strict=True):
        named = [one.partition(": ") for one in row["parsed"]]
        found[number] = [
            ReportStatement(
                by_field[row["sequence"], field], value, 0, 1, "x", "any", "affirmed", "certain", "model"
            ).record(1)
            for field, _, value in named
        ]
    return found


def read_by(told: ReportTexts, change: Callable[[Items], Items], lost: tuple[str, ...] = ()) -> Readings:
    """Readings where the model says what the rules say, changed."""
    results = {
        number: (change(items), [{"reason": "no_json"}] if number in lost else [])
        for number, items in of_rules(told).items()
    }
    return readings(told, results, CATALOGUE)


def value(found: Mapping[str, Any], name: str) -> set[float]:
    return {row["value"] for row in found[name].values()}


def test_a_model_that_reads_as_the_rules_do_scores_as_they_do_and_agrees_wholly(told: ReportTexts) -> None:
    found = read_by(told, lambda items: items)
    scores = found.scores(STATISTICS)
    assert len(scores["rules"]) == 2
    for arm, row in scores["rules"].items():
        for name in ("value", "low", "high", "n_items"):
            assert scores["model"][arm][name] == pytest.approx(row[name], abs=0, rel=0, nan_ok=True)
    assert value(scores, "agreement") == {100.0}
    assert found.model["gold"].equals(found.rules["gold"])


def test_what_a_model_does_not_tell_for_certain_is_not_said(told: ReportTexts) -> None:
    found = read_by(told, lambda items: [one | {"certainty": "uncertain"} for one in items])
    scores = found.scores(STATISTICS)
    assert value(scores, "model") == value(scores, "agreement") == {0.0}


def test_a_text_without_a_reading_counts_for_neither(told: ReportTexts) -> None:
    lost = told.sections[0]
    found = read_by(told, lambda items: items, (lost,))
    times = told.sections.count(lost)
    assert found.n_unread == times
    assert len(found.rules) == len(found.model) == len(found.agreement) == len(told.sections) - times


@pytest.mark.full
def test_nothing_of_the_run_changes_and_the_file_says_who_read(run: Run, told: ReportTexts) -> None:
    before = read(run.verdicts, VERDICTS)
    command = [sys.executable, "-m", "cardiolens.judge", f"run={run.root}", "of=reports", "model=uniform"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=run.root)
    assert done.returncode == 1, done.stdout + done.stderr  # a simulated reader reads no report
    document = json.loads((run.root / "second_reading-uniform.json").read_text())
    assert document["unread"] == document["texts"] == len(told.sections)
    assert not document["reads_itself"]
    assert read(run.verdicts, VERDICTS).equals(before)


def test_what_cannot_be_read_twice_is_refused(run: Run, tmp_path: Path) -> None:
    from cardiolens.base.errors import InputError
    from cardiolens.commands.judge import reread
    from cardiolens.storage.run_word import read_run

    with pytest.raises(InputError, match="model= is not given"):
        reread(run, [])
    with pytest.raises(InputError, match="no such folder"):
        read_run([f"run={tmp_path}/none"])
