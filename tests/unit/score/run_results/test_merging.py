"""Several runs judged as one."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from made_verdicts import verdict
from page_run import finished
from small_cohort import reader, sweep_spec, swept

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.commands.view import served_of
from cardiolens.score.run_results.merging import merge_replies, merged_run
from cardiolens.score.run_results.model_replies import WITH_REPLIES, Replies
from cardiolens.score.statistics.verdict_rows import Verdicts
from cardiolens.storage import documents, schemas, tables
from cardiolens.storage.places import Run
from cardiolens.workflow.steps.conclude import counters, write_manifest
from cardiolens.workflow.steps.judge_run import joined, judge_together

pytestmark = pytest.mark.full

PATIENTS = 6
ORACLE, CONSTANT = reader("oracle"), reader("constant", answer="A")
SAMPLED = {"name": "standard", "style": "standard", "max_tokens": 64, "samples": 3}


def run(root: Path, *models: dict[str, Any], **changes: Any) -> Run:
    """A finished run with its record."""
    planned, judged = swept(sweep_spec(root, *models, **({"subtask": ["C10", "L01"]} | changes)))
    documents.write_configuration(planned.run, planned.spec)
    counted = counters(planned, {}, judged.replies.counts)
    told = {"seconds": {}, "questions_digest": judged.replies.questions_digest}
    write_manifest(planned, {**counted, **told})
    return planned.run


def test_runs_of_two_models_are_compared_as_one(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [run(root, ORACLE), run(root, CONSTANT, ORACLE, name="other")]
    assert judge_together(runs) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"run: {merged_run(runs).root}"
    assert merged_run(runs) == merged_run(runs[::-1])
    view = merged_run(runs)
    verdicts, both = (tables.read(one.verdicts, schemas.VERDICTS) for one in (view, runs[1]))
    assert verdicts.equals(both)  # the oracle stands in both runs, and once in the view
    assert tables.read(view.scores, schemas.SCORES).num_rows
    assert any(
        row["factor"] == "model" for row in tables.read(view.comparisons, schemas.COMPARISONS).to_pylist()
    )
    assert view.analyses.exists()


def test_a_run_that_was_judged_anew_is_merged_anew(root: Path) -> None:
    runs = [run(root, ORACLE, name="one"), run(root, CONSTANT, name="two")]
    before = merged_run(runs)
    assert merged_run(runs) == before
    runs[1].analyses.write_text(runs[1].analyses.read_text() + "\n")
    assert merged_run(runs) != before


def test_a_run_that_goes_on_is_merged_with_what_it_has_now(root: Path, tmp_path: Path) -> None:
    runs = [run(root, ORACLE, name="one"), run(root, CONSTANT, name="two")]
    runs[1].analyses.unlink()
    disk.remove_tree(runs[1].verdicts)
    with pytest.raises(InputError, match="was not judged yet, or its results are gone"):
        joined(runs[1:])
    replies = runs[1].root.parents[1] / "store" / "completions"
    key = documents.read_manifest(runs[1])["models"]["constant"]["model_key"]
    endings = []
    for later in (False, True):
        (tmp_path / key if later else replies / key).rename(replies / key if later else tmp_path / key)
        verdicts = tables.read(joined(runs).verdicts, schemas.VERDICTS).to_pylist()
        endings.append({row["status"] for row in verdicts})
    assert endings == [{"judged", "missing"}, {"judged"}]


def test_the_viewer_of_two_runs_has_the_arms_of_both(root: Path) -> None:
    runs = [finished(sweep_spec(root, model, name="seen", subtask=["C10"])) for model in (ORACLE, CONSTANT)]
    served = served_of(runs)
    assert all(
        f'["{model}","clinical","8","standard","none"]' in served.index for model in ("oracle", "constant")
    )
    path = "cases/0/0-1.js"
    told = served.script(path, "") or ""
    script = json.loads(told.removeprefix(f'cardiolens.receive("{path}",').removesuffix(");\n"))
    (case,) = script["cases"].values()
    assert set(case) == {"0", "1"}
    assert [verdict["correct"] for verdict in case["0"]["verdicts"]] == [True]
    assert script["texts"][case["1"]["reply"]] == "ANSWER: A"


def test_what_one_run_lacks_another_gives(root: Path) -> None:
    whole = run(root, ORACLE, name="whole")
    lacking = run(root, ORACLE, name="lacking", budget=[8, 4])
    assert judge_together([lacking, whole]) == 0
    view = tables.read(merged_run([lacking, whole]).verdicts, schemas.VERDICTS)
    assert view.num_rows == tables.read(lacking.verdicts, schemas.VERDICTS).num_rows


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"subtask": ["C10"]}, "questions_digest"),
        ({"caption": "full"}, "caption"),
        ({"statistics": {"min_n": 2, "resamples": 200, "seed": 7}}, "statistics"),
        ({"selector": [{"name": "clinical", "kind": "uniform"}]}, "selector clinical has kind uniform, in"),
        ({"prompt": [SAMPLED]}, "prompt standard has samples 3, in .* 1; one name stands for one prompt"),
    ],
)
def test_mixtures_are_refused(root: Path, changes: dict[str, Any], what: str) -> None:
    runs = [run(root, ORACLE), run(root, CONSTANT, name="strange", **changes)]
    said = what if " " in what else f"{what} is not that of .*/small-"
    with pytest.raises(InputError, match=rf"strange-\w+: {said}"):
        judge_together(runs)


def test_another_cohort_is_refused(root: Path) -> None:
    runs = [run(root, ORACLE), run(root, CONSTANT, name="elsewhere")]
    manifest = json.loads(runs[1].manifest.read_text()) | {"cohort_digest": "d" * 32}
    runs[1].manifest.write_text(json.dumps(manifest))
    with pytest.raises(InputError, match=r"elsewhere-\w+: cohort_digest is not that of"):
        judge_together(runs)


def test_one_name_for_two_models_is_refused(root: Path) -> None:
    named = [run(root, reader("constant", "same", answer=letter), name=f"m{letter}") for letter in "AB"]
    with pytest.raises(
        InputError, match=r"model same has key same-\w+, in .* same-\w+; one name stands for one model"
    ):
        judge_together(named)


def replies(status: str) -> Replies:
    """One verdict of a run, with the options as displayed."""
    row = verdict("p1", "L01", "A", "A", status=status) | {"option_keys": ["B", "A"]}
    verdicts = Verdicts(WITH_REPLIES)
    verdicts.add(tables.from_rows([row], WITH_REPLIES))
    counts = Counter({"missing": int(status == "missing")})
    return Replies(verdicts, schemas.SEEN.empty_table(), counts, "digest")


def test_a_judged_verdict_wins_and_is_scored_with_its_options() -> None:
    """Before, scores of options, probabilities and controls were those of the first run alone."""
    merged = merge_replies([replies("missing"), replies("judged")])
    (row,) = merged.verdict_store.of_arm("arm", WITH_REPLIES.names).to_pylist()
    assert (row["status"], row["option_keys"], merged.unfinished) == ("judged", ["B", "A"], 0)
