"""Public benchmarks from file to verdict: closed questions alone are asked, and nothing is guessed."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from page_run import write_record
from set_cohort import prepare_set, read_set, set_spec
from small_cohort import reader, swept

from cardiolens.base.errors import InputError
from cardiolens.benchmarks.benchmark import Benchmark
from cardiolens.commands.compare import Board, leaderboard
from cardiolens.config.command_words import read_words
from cardiolens.config.compose import read_spec
from cardiolens.config.dataset import PICTURES
from cardiolens.inference.plan.plan import plan
from cardiolens.score.run_results.scoring import judge_and_write
from cardiolens.storage import schemas, tables
from cardiolens.storage.places import Run
from tests.support.cases.example_sets import OPEN_PART, WHOLE, make_benchmark

NAMES = ("vqa_rad", "slake", "omnimedvqa")
N = 20
OPEN = "open questions, whose free text no rule can call right or wrong"
UNLISTED = "closed questions whose options the data do not name"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A stand-in of each benchmark, prepared."""
    made = {name: tmp_path_factory.mktemp(name) for name in NAMES}
    for name, folder in made.items():
        make_benchmark(name, folder, N)
        prepare_set(folder, name, PICTURES)
    return made


@pytest.fixture(scope="module")
def runs(folders: dict[str, Path]) -> dict[str, Run]:
    """A finished run on each."""
    done = {}
    for name, folder in folders.items():
        planned, judged = swept(set_spec(folder, name, PICTURES))
        write_record(planned, judged)
        done[name] = planned.run
    return done


@pytest.mark.parametrize("name", NAMES)
def test_the_oracle_is_always_right_and_a_guess_at_chance(runs: dict[str, Run], name: str) -> None:
    rows = tables.read(runs[name].scores, schemas.SCORES).to_pylist()
    value = {
        (row["arm_id"], row["metric"]): (row["value"], row["low"], row["high"], row["n_items"])
        for row in rows
        if row["scope"] == "tier:1"
    }
    assert value["headline:oracle", "primary"][0] == 100.0
    _, low, high, items = value["headline:uniform", "primary"]
    chance = 50.0 if name != "omnimedvqa" else (50 + 100 / 3 + 25) / 3
    assert low <= chance <= high, "the interval of a reader that guesses holds chance"
    assert items == {"vqa_rad": 2 * N, "slake": 2 * N, "omnimedvqa": N}[name]
    assert value["headline:constant", "primary.skill"][0] <= 0 or name == "omnimedvqa"


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_asked_is_counted_by_reason(folders: dict[str, Path], name: str) -> None:
    read = read_set(folders[name], name, PICTURES)
    wanted = {
        "vqa_rad": {OPEN: 2 * N, UNLISTED: N},
        "slake": {OPEN: N, UNLISTED: N, "questions in another language than English": N},
        "omnimedvqa": {
            "questions of which two options read the same": N // 10,
            "questions whose answer is none of their options": N // 10,
        },
    }
    assert dict(read.left_out) == wanted[name]
    assert not read.failed
    assert len(read.cases) == N


@pytest.mark.parametrize("name", NAMES)
def test_a_prompt_shows_picture_question_and_options_alone(folders: dict[str, Path], name: str) -> None:
    prompts = [{"name": "standard", "style": "reasoning", "max_tokens": 64}]
    spec = set_spec(folders[name], name, PICTURES, prompt=prompts, control=["none", "blind"], caption="full")
    planned = plan(spec)
    rows = tables.read(planned.run.requests("oracle"), schemas.REQUESTS).to_pylist()
    asked = {
        question["qa_id"]: question
        for question in map(json.loads, spec.dataset.questions.read_text().splitlines())
    }
    for row in rows:
        question = asked[row["qa_id"]]
        blind = "blind" in row["arm_id"]
        assert row["prompt"].count(schemas.FRAME) == (0 if blind else 1)
        assert "cardiac" not in row["system"]
        assert "history" not in row["prompt"] + row["system"]
        assert ("You are given one image" in row["system"]) == (not blind)
        letters = re.findall(r"^[A-D]\. (.*)$", row["prompt"], re.M)
        assert letters == [option["text"] for option in question["options"]]
        before = row["prompt"].partition("Question:")[0]
        assert before in ({f"Image 1:\n{schemas.FRAME}\n"} if not blind else {"", "Image 1:\n"})


def test_a_benchmark_that_is_not_answered_to_its_end_says_so(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    planned, _ = swept(set_spec(folders["slake"], "slake", PICTURES, reader("noisy", "cut", error=0.4)))
    folder = planned.store.completions(planned.identities["cut"].model_key)
    kept = tables.read(folder, schemas.COMPLETIONS).slice(0, 9)
    for part in tables.parts(folder):
        part.unlink()
    tables.write_part(folder, kept, schemas.COMPLETIONS)
    keys = {name: identity.model_key for name, identity in planned.identities.items()}
    write_record(planned, judge_and_write(planned.run, planned.store, keys, planned.spec))
    out = tmp_path / "board.html"
    assert leaderboard(read_words(Board, [f"runs=[{planned.run.root}]", f"out={out}"])) == 1
    page = out.read_text()
    assert "Some requests have no answer yet: the scores are not final." in page
    assert re.search(r"incomplete, \d+\.\d % of items judged", page)
    assert f"{N} pictures," in page
    assert "Closed questions of a public benchmark alone. Its pictures" in page


def broken(tmp_path: Path, name: str, **changes: Any) -> Benchmark:
    """A benchmark of two pictures whose first record is changed; None takes a field away."""
    make_benchmark(name, tmp_path, 2)
    files = {"vqa_rad": tmp_path / WHOLE, "slake": tmp_path / "test.json"}
    path = files.get(name) or next(tmp_path.joinpath(*OPEN_PART).glob("*.json"))
    entries = json.loads(path.read_text())
    entries[0] = {key: value for key, value in (entries[0] | changes).items() if value is not None}
    path.write_text(json.dumps(entries))
    return read_set(tmp_path, name, PICTURES)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("vqa_rad", {"answer_type": "HALF"}, r'record 1: answer_type is "HALF"; expected CLOSED or OPEN'),
        ("vqa_rad", {"image_name": "../secret.jpg"}, "image_name is .*; expected a path below the folder"),
        ("vqa_rad", {"phrase_type": "later"}, 'phrase_type is "later"; expected one of test_freeform'),
        ("slake", {"q_lang": "fr"}, 'q_lang is "fr"; expected en or zh'),
        ("omnimedvqa", {"image_path": None}, "image_path is missing; expected at least one image"),
    ],
)
def test_a_wrong_record_is_named_and_the_others_are_read(
    tmp_path: Path, name: str, changes: dict[str, Any], message: str
) -> None:
    read = broken(tmp_path, name, **changes)
    (told,) = read.failed.values()
    assert re.search(message, told), told
    assert "record" in told
    assert read.cases


def test_a_copy_without_kinds_of_answers_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "test-00000.parquet").write_bytes(b"")
    with pytest.raises(InputError, match="lack answer_type, without which open and closed"):
        read_set(tmp_path, "vqa_rad", PICTURES)


def test_later_works_split_vqa_rad_into_two_files(tmp_path: Path) -> None:
    make_benchmark("vqa_rad", tmp_path, 3)
    whole = read_set(tmp_path, "vqa_rad", PICTURES)
    entries = json.loads((tmp_path / WHOLE).read_text())
    tests = [entry for entry in entries if entry["phrase_type"].startswith("test")]
    (tmp_path / "testset.json").write_text(json.dumps(tests))
    (tmp_path / WHOLE).unlink()
    (tmp_path / "VQA_RAD Image Folder").rename(tmp_path / "images")
    split = read_set(tmp_path, "vqa_rad", PICTURES)
    assert [[asked.key for asked in case.questions] for case in split.cases] == [
        [asked.key for asked in case.questions] for case in whole.cases
    ]
    assert split.cases[0].images[0].path.startswith("images/")


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("prompt=[twi_self]", "which need cases, e.g. those of dataset=medthinkvqa"),
        ("prompt=[twi_oracle1]", "has steps captions, which need cases"),
        ("control=[none,captions]", "have no captions"),
        ("selector=[clinical]", "no views to route"),
    ],
)
def test_what_pictures_do_not_have_is_refused(word: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_spec(["dataset=slake", "dataset.source=folder", word])
