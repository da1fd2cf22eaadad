"""Steps, verdicts and a judge in the form of MedThinkVQA's makers: read as theirs, refused otherwise."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cardiolens.base.errors import InputError
from cardiolens.benchmarks.benchmark import Source
from cardiolens.benchmarks.judges.reasoning import ERRORS, Reasoning, StepVerdict, read_reasoning
from cardiolens.benchmarks.judges.reasoning_judge import read_verdicts, requests
from cardiolens.benchmarks.medthinkvqa import records, source_of
from cardiolens.protocol.tasks.legal import constraint_of
from jobs import medthinkvqa
from jobs.medthinkvqa import agreement
from tests.support.cases.example_cases import make_cases

STEPS = ["There is a disc.", "So it is dyslumia.", "Nothing else fits."]
FACTUAL = {"is_factual": True, "is_critical": True, "explanation": "It is seen."}
WRONG = {
    "is_factual": False,
    "is_critical": False,
    "explanation": "No disc.",
    "error_types": ["Image Understanding Err", "Reasoning Err"],
}
UNNAMED = {"is_factual": False, "is_critical": True, "explanation": "It is not.", "error_types": None}
MISSING = FACTUAL | {"is_factual": False, "explanation": "Missing verdict; treated as unsupported."}
FAILED = FACTUAL | {"is_factual": False, "explanation": "No valid structured verdict was returned."}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    """Three generated cases, the third with the title and history of none other."""
    folder = tmp_path_factory.mktemp("cases")
    make_cases(folder, 3, 1)
    return source_of(folder)


def judged(source: Source, number: int, **fields: Any) -> dict[str, Any]:
    """The record of a case as their scripts leave it."""
    record = dict(records(source))[number]
    return record | {"explanation_steps": STEPS, "explanation_step_count": 3} | fields


def written(folder: Path, content: Any, name: str = "judged.json") -> Path:
    path = folder / name
    lines = content if name.endswith(".jsonl") else [content]
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    return path


@pytest.mark.parametrize("form", ["list", "data", "lines"])
def test_their_files_are_read_in_each_of_their_layouts(tmp_path: Path, source: Source, form: str) -> None:
    entries = [
        judged(source, 2, explanation_steps_checks=[FACTUAL | {"error_types": None}, WRONG, UNNAMED]),
        judged(source, 3, explanation_steps=[], explanation_steps_checks=[]),
        judged(source, 1),
    ]
    content = {"data": entries, "of": "x"} if form == "data" else entries
    path = written(tmp_path, content, "judged.jsonl" if form == "lines" else "judged.json")
    told = read_reasoning(path, source)
    assert told == [
        Reasoning(
            1,
            2,
            tuple(STEPS),
            (
                StepVerdict(True, True, ()),
                StepVerdict(False, False, (ERRORS[0], ERRORS[1])),
                StepVerdict(False, True, None),
            ),
            "their judge",
        ),
        Reasoning(3, 1, tuple(STEPS), None, "their judge"),
    ]


def test_a_case_is_found_whatever_the_case_and_white_space_of_its_title(
    tmp_path: Path, source: Source
) -> None:
    record = judged(source, 3)
    record["title"] = f"  {record['title'].upper()}\n"
    record["clinical_history"] = record.pop("CLINICAL_HISTORY")
    (told,) = read_reasoning(written(tmp_path, [record]), source)
    assert told.case == 3


@pytest.mark.parametrize("filled", [MISSING, FAILED])
def test_what_their_judge_did_not_say_is_no_verdict(tmp_path: Path, source: Source, filled: Any) -> None:
    """Their script fills in `is_factual: false`, which would count as an error that nobody found."""
    path = written(tmp_path, [judged(source, 1, explanation_steps_checks=[FACTUAL, filled, WRONG])])
    (told,) = read_reasoning(path, source)
    assert told.given is not None
    assert told.given[1] is None
    verdicts = (
        StepVerdict(True, True, ()),
        StepVerdict(True, True, ()),
        StepVerdict(False, False, (ERRORS[0],)),
    )
    labels = {one.label: one for one in agreement([told], [verdicts])}
    assert labels["is_factual"].n_steps == 2
    assert labels["is_factual"].accuracy.value == 1


def test_a_step_of_which_nobody_said_what_is_wrong_enters_no_kind_of_error(
    tmp_path: Path, source: Source
) -> None:
    path = written(tmp_path, [judged(source, 1, explanation_steps_checks=[FACTUAL, UNNAMED, WRONG])])
    told = read_reasoning(path, source)
    verdicts = tuple(StepVerdict(False, True, (name,)) for name in ERRORS[:3])
    labels = {one.label: one for one in agreement(told, [verdicts])}
    assert labels["is_factual"].n_steps == 3
    assert {labels[f"error: {name}"].n_steps for name in ERRORS} == {2}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"title": "Case 99"}, "title 'Case 99' with its CLINICAL_HISTORY is that of no case of the data"),
        ({"CLINICAL_HISTORY": "Other."}, "is that of no case of the data"),
        ({"explanation_steps": "One. Two."}, "explanation_steps is no list of 1 to 15 texts"),
        ({"explanation_steps": ["x"] * 16}, "explanation_steps is no list of 1 to 15 texts"),
        (
            {"explanation_steps_checks": [FACTUAL]},
            "no list of one verdict for each of the 3 steps",
        ),
        (
            {"explanation_steps_checks": [FACTUAL, FACTUAL, WRONG | {"error_types": ["Reasoning"]}]},
            'explanation_steps_checks, step 3: error_types is "Reasoning"; expected a list of Reasoning Err, '
            "Image Understanding Err, Clinical Scenario Err, Medical Knowledge Err, or null",
        ),
        (
            {"explanation_steps_checks": [FACTUAL, WRONG | {"error_types": "Reasoning Err"}, FACTUAL]},
            'step 2: error_types is "Reasoning Err"; expected a list of',
        ),
        (
            {"explanation_steps_checks": [FACTUAL | {"is_factual": "True"}, WRONG, FACTUAL]},
            'step 1: is_factual is "True"; expected true or false',
        ),
        (
            {"explanation_steps_checks": [FACTUAL, WRONG, FACTUAL | {"score": 1}]},
            "step 3: score is unknown; legal are is_factual, is_critical, explanation, error_types",
        ),
    ],
)
def test_another_form_is_refused_with_its_value(
    tmp_path: Path, source: Source, fields: Any, said: str
) -> None:
    path = written(tmp_path, [judged(source, 1), judged(source, 2, **fields)])
    with pytest.raises(InputError, match=re.escape(said)) as raised:
        read_reasoning(path, source)
    assert str(raised.value).startswith(f"{path}, entry 2: ")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"cases": []}, "holds no list of cases; expected a list, or an object with a list named data"),
        ([], "has no line"),
        (["x"], "entry 1: is str; expected an object"),
    ],
)
def test_a_file_of_no_cases_is_refused(tmp_path: Path, source: Source, content: Any, said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        read_reasoning(written(tmp_path, content), source)


def test_records_without_a_step_are_nothing_to_judge(tmp_path: Path, source: Source) -> None:
    with pytest.raises(InputError, match="no record has a step"):
        read_reasoning(written(tmp_path, [judged(source, 1, explanation_steps=[])]), source)


def test_two_cases_of_one_title_and_history_are_not_told_apart(tmp_path: Path) -> None:
    make_cases(tmp_path, 2, 1)
    path = tmp_path / "test.jsonl"
    (one, two) = map(json.loads, path.read_text().splitlines())
    two |= {name: one[name] for name in ("title", "CLINICAL_HISTORY")}
    path.write_text(f"{json.dumps(one)}\n{json.dumps(two)}\n")
    source = source_of(tmp_path)
    judged_file = written(tmp_path, [judged(source, 1)])
    with pytest.raises(InputError, match="is that of lines 1, 2 of the data; expected that of one case"):
        read_reasoning(judged_file, source)


def test_their_judge_is_shown_title_diagnosis_and_captions_and_no_options(source: Source) -> None:
    told = [Reasoning(1, 2, tuple(STEPS), None)]
    (published,) = requests(source, told)
    record = dict(records(source))[2]
    captions = {record[name] for name in record if name.endswith("_caption") and record[name]}
    assert record["title"] in published.prompt
    for caption in captions:
        assert published.prompt.count(f"- {caption}\n") == 1, "each wording once, as theirs"
    assert f"diagnosis\n{record['correct_answer_text']}\nEND" in published.prompt
    others = [text for text in record["options"].values() if text != record["correct_answer_text"]]
    assert all(text not in published.prompt for text in others)
    for text in (record["discussion"], record["IMAGING_FINDINGS"], record["CLINICAL_HISTORY"], STEPS[2]):
        assert text in published.prompt
    assert "Reasoning Err" in published.prompt
    assert constraint_of("schema", "report", (published.schema,), ()).schema == published.schema


def test_a_reply_in_their_form_is_believed_whole_or_not_at_all() -> None:
    factual = FACTUAL | {"error_types": None}
    good = [factual, WRONG, factual | {"error_types": ["Reasoning Err"]}]
    assert read_verdicts(json.dumps({"verdicts": good}), 3) == (
        StepVerdict(True, True, ()),
        StepVerdict(False, False, (ERRORS[0], ERRORS[1])),
        StepVerdict(True, True, ()),  # as in their code, where the types of a factual step do not count
    )
    for reply in (
        {"steps": good},
        {"verdicts": good[:2]},
        {"verdicts": [*good, factual]},
        {"verdicts": [FACTUAL, WRONG, factual]},
        {"verdicts": [factual, WRONG | {"error_types": ["Reasoning"]}, factual]},
        {"verdicts": good, "why": "x"},
    ):
        assert read_verdicts(json.dumps(reply), 3) is None


def test_the_command_reads_their_file_and_names_the_judge_of_its_agreement(
    tmp_path: Path, source: Source, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, [judged(source, 1, explanation_steps_checks=[FACTUAL, MISSING, WRONG])])
    reply = json.dumps({"verdicts": [FACTUAL | {"error_types": None}, WRONG, WRONG]})
    monkeypatch.setattr(medthinkvqa, "ask", lambda sweep, asked: [reply] * len(asked))
    words = [f"steps={path}", f"root={source.root}", f"out={tmp_path / 'out'}", "model=uniform"]
    assert medthinkvqa.main(["judge", *words]) == 0
    said = capsys.readouterr().out
    assert "no verdict: 1 of 3 steps, which their judge left out" in said
    assert "\tby their judge\tby judge\t" in said
    assert "is_factual\t2\t1\t1\t1\t1.00" in said
    (line,) = (tmp_path / "out" / "steps-uniform.jsonl").read_text().splitlines()
    assert json.loads(line)["judge"][1]["error_types"] == ["Reasoning", "Image Understanding"]
