"""From completions on disk to verdicts and scores of a whole run."""

import json
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from small_cohort import reader, sweep_spec, swept, values

from cardiolens.base.errors import InputError
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.plan.missing import missing_of
from cardiolens.inference.plan.plan import Plan
from cardiolens.score.run_results.model_replies import Replies
from cardiolens.score.run_results.run_analyses import read_judged
from cardiolens.score.run_results.run_comparison import changes
from cardiolens.score.run_results.scoring import judge_and_write, judge_replies
from cardiolens.score.statistics.verdict_rows import Verdicts
from cardiolens.storage import schemas, tables

PATIENTS = 20
SOME = ["C02", "C10", "L01", "D01", "D02"]


@pytest.mark.full
def test_scores_of_a_run_hold_paired_differences_of_its_arms(root: Path) -> None:
    spec = sweep_spec(root, reader("oracle"), reader("uniform", seed=1), budget=[4, 8], subtask=SOME)
    planned, judged = swept(spec)
    arm = {(arm.model.name, arm.budget): arm.arm_id for arm in planned.arms}
    stored = tables.read(planned.run.scores, schemas.SCORES)
    assert repr(stored.to_pylist()) == repr(judged.scores.to_pylist())
    compared = tables.read(planned.run.comparisons, schemas.COMPARISONS)
    assert repr(compared.to_pylist()) == repr(judged.comparisons.to_pylist())
    rows = [row for row in compared.to_pylist() if row["tier"] == 1 and row["arm_id"]]
    pairs = {(row["arm_id"], row["versus_arm_id"]): row for row in rows if row["metric"] == "primary"}
    assert set(pairs) == {
        (arm["uniform", 4], arm["oracle", 4]),
        (arm["uniform", 8], arm["oracle", 8]),
        (arm["oracle", 8], arm["oracle", 4]),
        (arm["uniform", 8], arm["uniform", 4]),
    }
    found = pairs[arm["uniform", 8], arm["oracle", 8]]
    assert found["high"] < 0
    assert found["p"] <= found["p_adjusted"]
    assert found["within_p_adjusted"] == 1
    assert (found["n_patients"], found["simulated"]) == (20, True)


def test_an_arm_without_a_judged_item_is_compared_with_nothing(root: Path) -> None:
    spec = sweep_spec(root, reader("oracle"), reader("constant", answer="B"), name="silent", subtask=SOME)
    planned, _ = swept(spec)
    keys = {name: identity.model_key for name, identity in planned.identities.items()}
    for part in tables.parts(planned.store.completions(keys["constant"])):
        part.unlink()
    judged = judge_and_write(planned.run, planned.store, keys, spec)
    assert judged.comparisons.num_rows == 0
    assert judged.replies.counts["missing"] == judged.replies.unfinished > 0


@pytest.mark.full
def test_reports_stand_beside_the_best_constant(root: Path) -> None:
    readers = reader("oracle"), reader("prevalence")
    spec = sweep_spec(root, *readers, name="reports", subtask=["R-CINE", "R-LGE", "R-PERF", "R-T2"])
    planned, judged = swept(spec)
    metrics = ("primary", "primary.constant", "primary.skill")
    found = {arm.model.name: values(judged, arm.arm_id, metrics) for arm in planned.arms}
    oracle = {metric: found["oracle"][metric, "tier:2"] for metric in metrics}
    assert oracle["primary"] == oracle["primary.skill"] == pytest.approx(100)
    assert found["prevalence"]["primary", "tier:2"] < oracle["primary.constant"] + 8 < 98
    assert abs(found["prevalence"]["primary.skill", "tier:2"]) < 60


@pytest.mark.full
def test_tables_and_comparisons_of_a_run_are_written(root: Path) -> None:
    readers = reader("oracle"), reader("uniform", seed=1), reader("constant", answer="A")
    seeds = {"name": "random", "kind": "random", "seeds": [1, 2]}
    selectors = [{"name": "clinical", "kind": "clinical"}, seeds]
    changes = {"name": "analyses", "budget": [16], "selector": selectors, "subtask": SOME}
    planned, judged = swept(sweep_spec(root, *readers, **changes))
    tree = json.loads(planned.run.analyses.read_text())
    found = tree["tables"]
    assert list(found) == [
        *("collapse", "spread", "gold shifts", "item difficulty", "how replies were read"),
        *("confusion", "how requests ended"),
    ]
    headline = [row for row in judged.scores.to_pylist() if row["arm_id"] == "headline:oracle"]
    scores = [row["value"] for row in headline if row["metric"] in ("primary", "primary.skill")]
    assert scores == pytest.approx([100] * 4)
    assert max(row["value"] for row in headline if row["metric"] == "primary.constant") < 90
    rows = judged.comparisons.to_pylist()
    assert all(row["simulated"] for row in rows)  # they are compared, and no finding on models
    alike = [row for row in rows if row["factor"] == "selector" and row["model"] == "oracle"]
    assert {row["difference"] for row in alike if row["metric"] == "primary"} == {0}
    joint = [row for row in found["confusion"] if row["subtask"] == "D01+D02"]
    arm = next(arm.arm_id for arm in planned.arms if arm.model.name == "oracle")
    assert all(row["gold"] == row["predicted"] for row in joint if row["arm_id"] == arm)
    assert sum(row["n"] for row in joint if row["arm_id"] == arm) == 20


def test_no_step_holds_the_verdicts_of_all_arms(root: Path, monkeypatch) -> None:
    spec = sweep_spec(root, reader("oracle"), reader("uniform", seed=1), budget=[4, 8], subtask=SOME)
    planned, judged = swept(spec)
    before = judged.replies.verdicts, repr(judged.scores.to_pylist()), planned.run.analyses.read_text()
    keys = {name: identity.model_key for name, identity in planned.identities.items()}
    with monkeypatch.context() as patched:
        patched.delattr(Verdicts, "whole")
        again = judge_and_write(planned.run, planned.store, keys, spec)
    same = repr(again.scores.to_pylist()) == before[1]  # a difference of the texts would take long to show
    assert same
    assert planned.run.analyses.read_text() == before[2]
    assert again.replies.verdicts.equals(before[0])
    assert tables.read(planned.run.verdicts, schemas.VERDICTS).equals(before[0])


class Stored:
    """A finished run with a store of its own, to be spoiled."""

    def __init__(self, spec: SweepSpec, planned: Plan) -> None:
        self.spec, self.planned = spec, planned
        self.keys = {name: identity.model_key for name, identity in planned.identities.items()}
        (self.key,) = self.keys.values()
        self.folder = planned.store.completions(self.key)

    def judged(self, questions_digest: str | None = None) -> Replies:
        return judge_replies(self.planned.run, self.planned.store, self.keys, self.spec, questions_digest)

    def add(self, *rows: dict[str, Any]) -> None:
        tables.write_part(self.folder, tables.from_rows(rows, schemas.COMPLETIONS), schemas.COMPLETIONS)

    def said(self) -> list[dict[str, Any]]:
        return tables.read(self.folder, schemas.COMPLETIONS).to_pylist()  # type: ignore[no-any-return]


@pytest.fixture
def stored(root: Path, tmp_path: Path) -> Stored:
    shutil.copytree(root / "store", tmp_path / "store", ignore=shutil.ignore_patterns("completions"))
    shutil.copy(root / "questions.jsonl", tmp_path)
    spec = sweep_spec(tmp_path, reader("uniform", seed=1), subtask=["C10", "L01", "C02"])
    return Stored(spec, swept(spec)[0])


def test_completions_nobody_asked_for_are_kept_ignored_and_counted(stored: Stored) -> None:
    before = stored.judged()
    strange = stored.said()[0] | {"request_key": "of another sweep"}
    stored.add(strange)
    after = stored.judged()
    assert after.verdicts.equals(before.verdicts)
    assert (before.unrequested, after.unrequested) == (0, 1)
    assert strange in stored.said()


def test_of_two_completions_the_earlier_counts_and_both_kinds_of_double_are_counted(stored: Stored) -> None:
    before = stored.judged()
    first, second = stored.said()[:2]
    later = max(row["written_at"] for row in stored.said())
    stored.add(first | {"written_at": later}, second | {"written_at": later, "text": "something else"})
    after = stored.judged()
    assert after.verdicts.equals(before.verdicts)
    assert after.duplicates == {"agreeing": 1, "disagreeing": 1}
    assert after.unfinished == 0


def test_a_clock_that_was_set_back_changes_nothing(stored: Stored) -> None:
    before = stored.judged()
    rows = stored.said()
    for part in tables.parts(stored.folder):
        part.unlink()
    stored.add(rows[0] | {"status": "engine_error", "text": None, "attempt": 1})
    for number, row in enumerate(rows):
        back = timedelta(days=3 if number % 2 == 0 else 0)
        stored.add(row | {"written_at": row["written_at"] - back, "attempt": 2 if number == 0 else 1})
    after = stored.judged()
    assert after.verdicts.equals(before.verdicts)
    assert after.duplicates == {"agreeing": 0, "disagreeing": 0}
    left = missing_of(stored.planned, "uniform")
    assert (left.left, left.done) == (0, len(rows))


def test_order_and_number_of_part_files_change_no_digit(stored: Stored) -> None:
    """Rows shuffled, one part a row, judged twice."""
    arguments = (stored.planned.run, stored.planned.store, stored.keys)
    results = []
    rows = stored.said()
    for place in range(3):
        judged = judge_and_write(*arguments, stored.spec)
        written = stored.planned.run.analyses.read_text()
        results.append((judged.replies.verdicts.to_pylist(), repr(judged.scores.to_pylist()), written))
        if place == 0:
            for part in tables.parts(stored.folder):
                part.unlink()
            for row in reversed(rows):
                stored.add(row)
    assert results[0] == results[1] == results[2]


def test_a_truncated_part_file_is_named_and_nothing_is_replaced(stored: Stored) -> None:
    part = tables.parts(stored.folder)[0]
    part.write_bytes(part.read_bytes()[:-20])
    before = stored.planned.run.scores
    kept = [path.read_bytes() for path in tables.parts(before)]
    arguments = (stored.planned.run, stored.planned.store, stored.keys)
    with pytest.raises(InputError, match=rf"{part.name}: not a whole Parquet file .*delete it and run again"):
        judge_and_write(*arguments, stored.spec)
    assert [path.read_bytes() for path in tables.parts(before)] == kept


def test_tables_of_two_judgements_are_not_read_as_one(stored: Stored, monkeypatch) -> None:
    arguments = (stored.planned.run, stored.planned.store, stored.keys, stored.spec)
    with monkeypatch.context() as patched:
        patched.setattr(
            "cardiolens.score.run_results.scoring.tables.replace",
            lambda place, *_: (_ for _ in ()).throw(OSError("full")) if place.name == "scores" else None,
        )
        with pytest.raises(OSError, match="full"):
            judge_and_write(*arguments)
    with pytest.raises(InputError, match=r"has no readable analyses .*python -m cardiolens\.judge run="):
        read_judged(stored.planned.run)
    judge_and_write(*arguments)
    assert read_judged(stored.planned.run)


def change_questions(stored: Stored, **changes: Any) -> None:
    table = tables.read(stored.planned.store.questions, schemas.QUESTIONS)
    rows = [row | (changes if row["subtask"] == "L01" else {}) for row in table.to_pylist()]
    tables.replace(
        stored.planned.store.questions, tables.from_rows(rows, schemas.QUESTIONS), schemas.QUESTIONS
    )


@pytest.mark.parametrize("changes", [{"answer": ["A"]}, {"question": "Is there a scar?"}])
def test_questions_that_changed_since_the_run_are_refused(stored: Stored, changes: dict[str, Any]) -> None:
    digest = stored.judged().questions_digest
    assert stored.judged(digest).questions_digest == digest
    change_questions(stored, **changes)
    with pytest.raises(InputError, match=r"the questions of .* have changed since it was judged; put the"):
        stored.judged(digest)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"answer_type": "essay"}, "answer_type 'essay' is not one of"),
        ({"subtask": "X99"}, "subtask 'X99' is not in protocol 'open.*C01"),
    ],
)
def test_a_question_of_another_kind_is_named(stored: Stored, changes: dict[str, str], said: str) -> None:
    change_questions(stored, **changes)
    with pytest.raises(InputError, match=rf"PH-\d+:L01: {said}"):
        stored.judged()


def test_what_judging_again_changed_is_said_by_kind(stored: Stored) -> None:
    before = stored.judged().verdict_store
    rows = before.whole().to_pylist()
    right = next(row for row in rows if row["correct"])
    right |= {"correct": False, "parsed": [], "parse_status": "parse_error"}
    gone = rows.pop()
    after = Verdicts()
    after.add(pa.Table.from_pylist([*rows, gone | {"arm_id": "another"}], schema=schemas.VERDICTS))
    found = changes(before, after)
    assert (found.total, found.changed, found.new, found.gone) == (len(rows) + 1, 1, 1, 1)
    assert found.kinds == {("right", "wrong (parse_error)"): 1}
    assert changes(before, before).changed == 0
