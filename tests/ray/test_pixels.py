"""Pixels end to end: what is broken between a study's file and the model's eye lowers a reader's score.

The small reader was trained on phantoms as the software shows them. Copies of the same studies, in each of
which one thing is wrong, are read in one sweep with real vLLM; a fault of the same kind in preprocessing,
shards, selection or rendering would do the same to the copy that nobody touched.
"""

import json
import subprocess
import sys
from collections import defaultdict
from math import comb

import pytest

import cardiolens
from cardiolens.config.dataset import PhantomSpec
from cardiolens.phantom.cohort import make_cohort
from tests.ray.broken_pixels import BREAKS, UNTOUCHED, WRONG_STUDY, break_cohort

pytestmark = pytest.mark.ray

SEED, STUDIES = 61007, 20  # of no cohort that was learned from
READS = ("C01", "C02", "C06", "C10", "L01", "L02", "L03", "P01", "P02", "T01")
UNLIKELY = 0.01  # one-sided p of a sign test, questions as units


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, bool]]:
    """Whether each question was answered rightly, by break and by the id that it has in the cohort."""
    root = tmp_path_factory.mktemp("pixels")
    make_cohort(PhantomSpec(seed=SEED, n_sampled=STUDIES), root / "whole")
    break_cohort(root / "whole", root / "broken")
    words = [
        *("dataset=real", "dataset.name=broken", f"dataset.studies={root}/broken/studies"),
        *(f"dataset.questions={root}/broken/questions.jsonl", f"store={root}/store", f"outputs={root}/out"),
        *("model=[reader_small]", "selector=[clinical]", "budget=[16]", "prompt=[standard]"),
        *("answer_format=choice", "tracker=none", "name=pixels"),
    ]
    command = [sys.executable, "-m", "cardiolens.sweep", *words]
    ended = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    (folder,) = (root / "out").iterdir()
    found: dict[str, dict[str, bool]] = defaultdict(dict)
    for row in cardiolens.read_run(folder).verdicts.to_pylist():
        name, _, qa_id = row["qa_id"].partition("-")
        if row["subtask"] in READS:
            found[name][qa_id] = row["correct"] is True
    return found


def test_every_copy_was_asked_the_same(right: dict[str, dict[str, bool]]) -> None:
    assert set(right) == set(BREAKS)
    assert all(set(answers) == set(right[UNTOUCHED]) for answers in right.values())


@pytest.mark.parametrize("name", [name for name in BREAKS if name != UNTOUCHED])
def test_a_break_lowers_the_score(right: dict[str, dict[str, bool]], name: str) -> None:
    whole, broken = right[UNTOUCHED], right[name]
    lost = sum(whole[qa_id] and not broken[qa_id] for qa_id in whole)
    won = sum(broken[qa_id] and not whole[qa_id] for qa_id in whole)
    told = json.dumps({one: round(sum(answers.values()) / len(answers), 3) for one, answers in right.items()})
    assert _sign_test(lost, won) < UNLIKELY, f"{name}: {lost} lost, {won} won; shares right: {told}"


def test_another_patients_frames_harm_only_the_questions_that_got_them(
    right: dict[str, dict[str, bool]],
) -> None:
    whole, wrong = right[UNTOUCHED], right[WRONG_STUDY]
    changed = sum(whole[qa_id] != wrong[qa_id] for qa_id in whole)
    assert changed <= 0.15 * len(whole)


def _sign_test(lost: int, won: int) -> float:
    """Chance of at least so many losses if a change were as likely a loss as a gain."""
    n = lost + won
    return sum(comb(n, k) for k in range(lost, n + 1)) / 2**n
