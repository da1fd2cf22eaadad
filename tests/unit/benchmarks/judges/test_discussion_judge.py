"""Case discussions judged by a model: what it is shown, what is believed, and what is counted."""

import json
from pathlib import Path
from typing import Any

import pytest

from cardiolens.base.errors import InputError
from cardiolens.benchmarks.benchmark import Source
from cardiolens.benchmarks.judges.discussion_judge import (
    MOST_SENTENCES,
    Discussion,
    Rating,
    rated_line,
    rating_requests,
    read_discussions,
    read_rating,
)
from cardiolens.benchmarks.medthinkvqa import records, source_of
from cardiolens.protocol.prompts.case_prompts import SECTIONS, VALUES
from cardiolens.protocol.tasks.legal import constraint_of
from jobs import medthinkvqa
from jobs.medthinkvqa import discussion_scores
from tests.support.cases.example_cases import make_cases

TEXT = "\n".join(f"{name}:\nIt is so. And more." for name in SECTIONS)
WORTH = dict.fromkeys(VALUES, 1)
GOOD = {"sentences": [True] * 12, "values": WORTH}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    """Three generated cases."""
    folder = tmp_path_factory.mktemp("cases")
    make_cases(folder, 3, 1)
    return source_of(folder)


def written(folder: Path, *lines: Any) -> Path:
    path = folder / "discussions.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"case": 4, "discussion": "x"}, "case is 4; expected the line of a case, 1 to 3"),
        ({"case": "1", "discussion": "x"}, "case is '1'; expected"),
        ({"case": 1, "discussion": None}, "expected case and discussion, which is a text"),
        ({"case": 1, "discussion": "x", "by": "y"}, "has by, case, discussion; expected case and discussion"),
    ],
)
def test_a_line_that_cannot_be_used_is_named(tmp_path: Path, line: Any, said: str) -> None:
    path = written(tmp_path, {"case": 1, "discussion": TEXT}, line)
    with pytest.raises(InputError, match=said) as raised:
        read_discussions(path, 3)
    assert str(raised.value).startswith(f"{path}:2: ")


def test_the_judge_is_shown_the_case_and_each_sentence_on_one_line(tmp_path: Path, source: Source) -> None:
    text = TEXT.replace("And more.", "And 2) (Outcome)\nmore \ufffc.")
    told = read_discussions(written(tmp_path, {"case": 2, "discussion": text}), 3)
    (asked,) = rating_requests(source, told)
    record = dict(records(source))[2]
    for name in ("title", "CLINICAL_HISTORY", "IMAGING_FINDINGS", "discussion", "correct_answer_text"):
        assert record[name] in asked.prompt
    assert (
        "\n1. (Background) It is so.\n2. (Background) And 2) (Outcome)\n3. (Background) more  .\n"
        in asked.prompt
    )
    assert "\ufffc" not in asked.prompt
    assert json.loads(asked.schema)["properties"]["sentences"]["minItems"] == len(told[0].sentences) == 18
    assert constraint_of("schema", "report", (asked.schema,), ()).schema == asked.schema


def test_what_has_not_the_sections_or_is_too_long_is_not_asked_about(source: Source) -> None:
    long = TEXT.replace("And more.", "And more. " * MOST_SENTENCES)
    told = [Discussion.of(1, 1, "All is said."), Discussion.of(2, 1, long), Discussion.of(3, 1, TEXT)]
    assert [len(one.sentences) for one in told] == [0, 0, 12]
    assert [one.text_id for one in rating_requests(source, told)] == ["line-000003"]


@pytest.mark.parametrize(
    "reply",
    [
        None,
        "",
        "[]",
        GOOD | {"why": "x"},
        GOOD | {"sentences": [True] * 11},
        GOOD | {"sentences": [1] * 12},
        GOOD | {"values": WORTH | {"imaging_findings": 3}},
        GOOD | {"values": WORTH | {"imaging_findings": True}},
        GOOD | {"values": WORTH | {"imaging_findings": 1.5}},
        GOOD | {"values": WORTH | {"beauty": 1}},
        GOOD | {"values": {"imaging_findings": 1}},
        {"sentences": [True] * 12},
    ],
)
def test_a_reply_is_believed_whole_or_not_at_all(reply: Any) -> None:
    one = Discussion.of(1, 1, TEXT)
    text = reply if reply is None or isinstance(reply, str) else json.dumps(reply)
    assert read_rating(text, one) is None
    assert read_rating(json.dumps(GOOD), one) == Rating((True,) * 12, WORTH)


def test_scores_are_shares_of_sentences_and_means_of_values() -> None:
    one, two = Discussion.of(1, 1, TEXT), Discussion.of(2, 2, TEXT.replace("It is so. And more.", "So.", 1))
    assert len(two.sentences) == 11
    judged = [
        (one, Rating((True, False, *[True] * 10), WORTH)),
        (two, Rating((True, *[False] * 10), WORTH | {"imaging_findings": 2})),
    ]
    scores = {score.label: score for score in discussion_scores(judged)}
    assert list(scores) == [*SECTIONS, "all sections", *VALUES]
    assert (scores["Background"].n, scores["Background"].n_cases) == (3, 2)
    assert scores["Background"].score.value == pytest.approx(2 / 3)
    assert scores["all sections"].score.value == pytest.approx(12 / 23)
    assert scores["imaging_findings"].score.value == pytest.approx(1.5)
    assert scores["imaging_findings"].score.low < 1.5 < scores["imaging_findings"].score.high
    (single, *_) = discussion_scores(judged[:1])
    assert single.score.value == 0.5
    assert single.score.low != single.score.low, "one case has no interval"
    (nothing, *_) = discussion_scores([])
    assert nothing.n == 0
    assert nothing.score.value != nothing.score.value


def test_the_command_counts_what_it_did_not_judge(
    tmp_path: Path, source: Source, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [{"case": case, "discussion": text} for case, text in ((1, TEXT), (2, "All is said."), (3, TEXT))]
    path = written(tmp_path, *lines)
    monkeypatch.setattr(medthinkvqa, "ask", lambda sweep, asked: [json.dumps(GOOD), "no"])
    words = [f"discussions={path}", f"root={source.root}", f"out={tmp_path / 'out'}", "model=uniform"]
    assert medthinkvqa.main(["rate", *words]) == 0
    said = capsys.readouterr().out
    assert (
        "judged: 1 of 3 discussions; 1 without the six sections or over 120 sentences, 1 without a "
        "legal reply"
    ) in said
    assert "\nall sections\t1\t12\t1.00\n" in said
    kept = [
        json.loads(line) for line in (tmp_path / "out" / "discussions-uniform.jsonl").read_text().splitlines()
    ]
    assert [one["judge"] is None for one in kept] == [False, True, True]
    assert kept[0]["judge"]["sentences"][2] == {
        "section": "Clinical Perspective",
        "sentence": "It is so.",
        "is_correct": True,
    }
    assert json.loads(rated_line(Discussion.of(7, 1, TEXT), None)) == {"line": 7, "case": 1, "judge": None}
