"""Exported items and tables hold what the run holds; two runs compared say what changed, and gate."""

import csv
import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from page_run import finished, small_spec
from small_cohort import make_cohort, reader

from cardiolens.base.digest import digest_of
from cardiolens.base.errors import InputError
from cardiolens.commands.compare import Words, compare
from cardiolens.config.command_words import read_words
from cardiolens.score.run_results.run_comparison import compare_runs, configuration_changes
from cardiolens.show.export.table_export import export, latex
from cardiolens.show.page.elements import Column, Table
from cardiolens.storage import schemas, tables
from cardiolens.storage.places import Run
from cardiolens.study.cohort import read_cohort, write_cohort

READER = reader("noisy", "model", error=0.0)
WORSE = reader("noisy", "model", error=0.6)
ASKED = {"control": ["none"], "subtask": ["C02", "C10", "R-CINE"]}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run]:
    """The same arms of one model, which errs more in the second run."""
    root = make_cohort(tmp_path_factory.mktemp("compare"), 24)
    good, bad = (small_spec(root, name, model=[one], **ASKED) for name, one in (("a", READER), ("b", WORSE)))
    return finished(good), finished(bad)


def test_every_item_is_exported_without_patients(runs: tuple[Run, Run]) -> None:
    run, _ = runs
    folder = export(run, patient_ids=False)
    assert r"\begin{tabular}" in (folder / "tables.tex").read_text()
    items = list(csv.DictReader((folder / "items.csv").read_text().splitlines()))
    verdicts = tables.read(run.verdicts, schemas.VERDICTS)
    assert len(items) == verdicts.num_rows
    assert "patient_id" not in items[0]
    right = sum(bool(value) for value in verdicts["correct"].to_pylist())
    assert sum(item["correct"] == "True" for item in items) == right
    assert {item["qa_id"] for item in items} == set(verdicts["qa_id"].to_pylist())


def test_patients_are_exported_where_asked_for(runs: tuple[Run, Run]) -> None:
    folder = export(runs[1], patient_ids=True)
    items = list(csv.DictReader((folder / "items.csv").read_text().splitlines()))
    assert {item["patient_id"] for item in items} == {f"PH-{number:04d}" for number in range(1, 25)}


def test_tables_for_a_paper_escape_what_their_language_would_read() -> None:
    columns = (Column("a", "model & co"), Column("b", "score", "score"), Column("p", "p", "p"))
    table = Table("t", "T_1", columns, [("x|y_1 d′", 56.25, 0.0002), ("50 %", float("nan"), None)])
    assert r"model \& co & score & p \\" in latex(table)
    assert r"x|y\_1 d$'$ & 56.2 & $<$ 0.001 \\" in latex(table)
    assert r"\caption{T\_1}" in latex(table)
    assert r"50 \% & -- & -- \\" in latex(table)


def test_a_worse_run_is_told_with_its_flips_and_gates(
    runs: tuple[Run, Run], capsys: pytest.CaptureFixture[str]
) -> None:
    found = {one.scope: one for one in compare_runs(*runs)}
    verdicts = [tables.read(run.verdicts, schemas.VERDICTS) for run in runs]
    right = [_right(one, tier=1) for one in verdicts]
    assert found["tier:1"].lost == len(right[0] - right[1]) > 0
    assert found["tier:1"].gained == len(right[1] - right[0])
    assert found["tier:1"].high < -2
    assert compare(*runs, margin=2) == 1
    assert compare(runs[1], runs[0], margin=2) == 0
    assert compare(*runs, margin=99) == 0
    assert "configuration: model[model].options.error: 0.0 to 0.6" in capsys.readouterr().out


def test_an_interval_of_few_patients_is_not_printed(
    runs: tuple[Run, Run], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("cardiolens.score.statistics.comparisons.FEWEST_FOR_CLAIM", 25)
    assert compare(*runs, margin=2) == 0
    words = capsys.readouterr().out
    assert " points (no interval to rely on), 24 patients, " in words
    assert "95 % CI" not in words


def _right(verdicts: pa.Table, tier: int) -> set[str]:
    return {row["qa_id"] for row in verdicts.to_pylist() if row["tier"] == tier and row["correct"]}


def test_a_run_is_not_different_from_itself(runs: tuple[Run, Run]) -> None:
    assert list(configuration_changes(runs[0], runs[0])) == []
    differences = list(compare_runs(runs[0], runs[0]))
    assert differences
    assert all(one.value == 0 and one.low == -one.high < 0 for one in differences), "no width of zero"


@pytest.mark.parametrize("hospitals", [3, 6])
def test_five_hospitals_are_random_in_a_comparison_too(
    runs: tuple[Run, Run], tmp_path: Path, hospitals: int
) -> None:
    root = make_cohort(tmp_path, 24)
    cohort = read_cohort(root / "store")
    assert cohort is not None
    studies = {
        name: record.model_copy(update={"subgroups": {"site": f"H{at % hospitals}"}})
        for at, (name, record) in enumerate(cohort.studies.items())
    }
    write_cohort(root / "store", cohort.model_copy(update={"studies": studies}))
    of_hospitals = [
        finished(small_spec(root, name, model=[one], **ASKED)) for name, one in (("a", READER), ("b", WORSE))
    ]
    (plain, *_), (found, *_) = compare_runs(*runs), compare_runs(*of_hospitals)
    assert found.value == plain.value
    assert ((found.low, found.high) == (plain.low, plain.high)) == (hospitals < 5)
    (root / "store").rename(root / "elsewhere")
    if hospitals < 5:
        assert compare_runs(*of_hospitals)[0] == found
        return
    with pytest.raises(InputError, match=r"store=.*no such folder"):
        compare_runs(*of_hospitals)
    moved = Run(of_hospitals[0].root, root / "elsewhere")
    assert compare_runs(moved, of_hospitals[1])[0] == found


def test_runs_that_different_rules_judged_are_not_compared(runs: tuple[Run, Run], tmp_path: Path) -> None:
    earlier = Run(tmp_path / "earlier")
    shutil.copytree(runs[1].root, earlier.root)
    tree = json.loads(earlier.analyses.read_text()) | {"rules": "1.0"}
    content = {name: value for name, value in tree.items() if name != "digest"}
    earlier.analyses.write_text(json.dumps(content | {"digest": digest_of(content)}))
    with pytest.raises(InputError, match=r"earlier: was judged by rules 1\.0, .* by \d.*judge both by one"):
        compare(runs[0], earlier, margin=2)


def test_other_arms_and_wrong_words_are_refused(runs: tuple[Run, Run], tmp_path: Path) -> None:
    root = make_cohort(tmp_path, 2)
    other = finished(small_spec(root, "other", model=[reader("oracle")], subtask=["C02"], control=["none"]))
    with pytest.raises(InputError, match=r"questions_digest is not that of|shares no arm"):
        compare_runs(runs[0], other)
    folder = runs[0].root
    with pytest.raises(InputError, match="margin: Input should be a finite number, got 'nan'"):
        read_words(Words, [f"a={folder}", f"b={folder}", "margin=nan"])
