"""Another protocol is another set of data files: the whole way with one, and no line of code changed."""

import json
from pathlib import Path

import pyarrow.compute as pc
import pytest
from small_cohort import swept

from cardiolens.config.compose import read_spec
from cardiolens.phantom.phantom_cohort import make_cohort
from cardiolens.storage import schemas, tables
from cardiolens.study.cohort import Cohort, write_cohort
from cardiolens.study.group import prepare_group

MINIATURE = Path(__file__).parents[2] / "miniature"
# what the data files make of the truth of two studies
ANSWERS = {
    "PH-NORMAL:SCAR": ["A"],
    "PH-NORMAL:PUMP": ["A"],
    "PH-NORMAL:CAUSE": ["A"],
    "PH-ICM-LAD:SCAR": ["B"],
    "PH-ICM-LAD:SCAR-SIDE": ["A"],
    "PH-ICM-LAD:PUMP": ["B"],
    "PH-ICM-LAD:CAUSE": ["B"],
}


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    root = tmp_path_factory.mktemp("miniature")
    where = [
        f"dataset.studies={root}/data/studies",
        f"dataset.questions={root}/data/questions.jsonl",
        f"store={root}/store",
        f"outputs={root}/outputs",
    ]
    cohort = ["dataset.phantom.canonical=[PH-NORMAL,PH-ICM-LAD]", "dataset.phantom.n_sampled=0"]
    words = [f"dataset.protocol={MINIATURE}", "model=[oracle,constant]", "budget=[4]", "statistics.min_n=1"]
    return read_spec(["dataset=phantom_ci", *cohort, *where, *words])


@pytest.fixture(scope="module")
def run(spec):
    make_cohort(spec.dataset.phantom, spec.dataset.studies.parent, spec.dataset.protocol)
    folders = sorted(spec.dataset.studies.iterdir())
    outcomes = prepare_group(spec.store, tables.part_name(), folders, spec.dataset.display)
    studies = {outcome.name: outcome.record for outcome in outcomes}
    write_cohort(spec.store, Cohort(window_pct=(1.0, 99.0), studies=studies, failed={}))
    return swept(spec)


@pytest.fixture(scope="module")
def planned(run):
    return run[0]


@pytest.fixture(scope="module")
def judged(run):
    return run[1]


def test_questions_are_those_of_the_data_files(spec, planned):
    records = [json.loads(line) for line in spec.dataset.questions.read_text().splitlines()]
    assert {record["protocol"] for record in records} == {"miniature-1"}
    assert {record["qa_id"]: record["answer"] for record in records if "answer" in record} == ANSWERS
    notes = {record["study_id"]: record["reference"]["fields"] for record in records if "reference" in record}
    assert notes["PH-NORMAL"] == {"enhancement": "No", "regions": []}
    assert notes["PH-ICM-LAD"] == {"enhancement": "Yes", "regions": ["Front or septum"]}


def test_requests_ask_them_in_their_words_on_their_views(planned):
    requests = tables.read(planned.run.requests("oracle"), schemas.REQUESTS).to_pylist()
    assert {request["qa_id"] for request in requests} == {*ANSWERS, "PH-NORMAL:NOTE", "PH-ICM-LAD:NOTE"}
    side = next(request for request in requests if request["qa_id"] == "PH-ICM-LAD:SCAR-SIDE")
    assert "On which side is it bright?" in side["prompt"]
    assert "A. Front or septum" in side["prompt"]
    assert {frame["volume_id"] for frame in side["frames"]} == {"lge_sax", "lge_4ch"}


def test_a_reader_that_knows_the_truth_scores_100_and_one_that_says_a_does_not(judged):
    answers = judged.replies.verdicts.filter(
        pc.equal(judged.replies.verdicts["channel"], "answer")
    ).to_pylist()
    assert {row["parse_status"] for row in answers} == {"ok"}
    scores = {
        (row["arm_id"].split("-")[0], row["scope"]): row["value"]
        for row in judged.scores.to_pylist()
        if row["metric"] == "primary"
    }
    assert [scores["oracle", f"tier:{tier}"] for tier in (1, 2, 3)] == pytest.approx([100, 100, 100])
    assert scores["constant", "subtask:PUMP"] == pytest.approx(50)
    assert scores["constant", "subtask:SCAR-SIDE"] == pytest.approx(100)
    assert scores["constant", "tier:3"] == pytest.approx(100 / 3)  # macro-F1: one class never named


def test_the_record_of_a_run_names_the_protocol_not_its_folder(planned):
    assert planned.protocol == "miniature-1"
