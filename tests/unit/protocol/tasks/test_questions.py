import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardiolens.base.errors import InputError
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.protocol.tasks.legal import option_problems
from cardiolens.protocol.tasks.questions import write_questions
from cardiolens.storage import schemas
from tests.unit.questions_file import read_questions

REAL = Path(__file__).parents[5] / "shared" / "cmr" / "questions.jsonl"
QUESTION = {
    "schema": "qa-1",
    "qa_id": "S1:C02",
    "study_id": "S1",
    "patient_id": "S1",
    "tier": 1,
    "subtask": "C02",
    "sequence": "cine",
    "question": "Which descriptions apply?",
    "answer_type": "multi",
    "options": [
        {"key": "A", "text": "Normal"},
        {"key": "B", "text": "Thinned"},
        {"key": "C", "text": "Thick"},
    ],
    "exclusive": [],
    "answer": ["B", "C"],
    "parent": None,
    "origin": "report",
    "evidence": [],
    "verification": {"status": "verified", "stage": 7, "kappa_batch": None},
    "protocol": "openprotocol-1",
}
REPORT = {
    **{
        key: QUESTION[key]
        for key in ("schema", "study_id", "patient_id", "origin", "verification", "protocol")
    },
    "qa_id": "S1:R-T2",
    "tier": 2,
    "subtask": "R-T2",
    "sequence": "t2",
    "question": "Write it.",
    "answer_type": "report",
    "reference": {
        "fields": {"signal": "Normal", "levels": []},
        "findings": "No oedema.",
        "impression": "Normal.",
    },
}


@pytest.fixture(scope="module")
def catalogue():
    return load_catalogue("openprotocol-1")


@pytest.fixture
def read(tmp_path, catalogue):
    def _read(*records):
        path = tmp_path / "questions.jsonl"
        write_questions(path, records)
        return read_questions(path, catalogue)

    return _read


def test_records_become_rows_of_the_questions_table(read):
    table = read(QUESTION, REPORT)
    assert table.schema.equals(schemas.QUESTIONS)
    first, second = table.to_pylist()
    assert first["answer"] == ["B", "C"]
    assert first["options"][1] == {"key": "B", "text": "Thinned"}
    assert first["exclusive"] == ["A"]  # the catalogue's, whatever the record says
    assert first["reference"] is None
    assert json.loads(second["reference"]) == REPORT["reference"]
    assert second["answer"] == []


def test_line_separators_inside_text_are_text(read):
    assert read(QUESTION | {"question": "one\u2028two"}).to_pylist()[0]["question"] == "one\u2028two"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer": ["A", "B"]}, r"combines \['A'\], which stands alone, with others"),
        ({"answer": ["B", "B"]}, "names an option twice"),
        ({"answer": []}, "answer is empty"),
        ({"tier": 3}, "tier is 3, but C02 has 1"),
        ({"protocol": "other-1"}, "protocol is 'other-1', but 'openprotocol-1' is configured"),
        (
            {"origin": "guess"},
            "origin: Input should be 'report', 'mask', 'set', 'reader' or 'phantom', got 'guess'",
        ),
        ({"question": "a\ufffcb"}, r"question: holds U\+FFFC"),
        ({"question": "a \ufdd07\ufdd1"}, r"question: holds U\+FDD0, which is reserved"),
        (
            {"options": [{"key": "A", "text": "x\ufffc"}, {"key": "B", "text": "y"}]},
            r"options.0.text: holds U\+FFFC",
        ),
        ({"reference": REPORT["reference"]}, "reference belongs to report questions only"),
    ],
)
def test_what_is_wrong_is_named(read, change, message):
    with pytest.raises(InputError, match=message) as error:
        read(REPORT, QUESTION | change)
    assert "questions.jsonl:2: " in str(error.value)


def test_a_report_has_no_options(read):
    with pytest.raises(InputError, match="do not belong to a report question"):
        read(REPORT | {"answer": ["A"]})


@pytest.mark.skipif(not REAL.exists(), reason="the real studies are not beside the repository")
def test_the_real_questions_load(catalogue):
    assert read_questions(REAL, catalogue).num_rows == 4


COMPACT = {"study": "S1", "subtask": "L05", "answer": ["A", "D"]}


def test_a_compact_line_is_the_catalogues_question(read, catalogue):
    (row,) = read(COMPACT).to_pylist()
    subtask = catalogue["L05"]
    full = QUESTION | {
        "qa_id": "S1:L05",
        "subtask": "L05",
        "sequence": "lge",
        "question": subtask.question,
        "options": [{"key": option.key, "text": option.text} for option in subtask.options],
        "answer": ["A", "D"],
        "origin": "reader",
    }
    (written_out,) = read(full).to_pylist()
    assert row == written_out | {"patient_id": None}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"subtask": "R-CINE"}, "S1:R-CINE: a report has no compact form"),
        ({"subtask": "C10"}, "must be exactly one of"),
        ({"subtask": "C02"}, "stands alone, with others"),
        ({"answer": []}, "answer is empty"),
        (
            {"study_id": "S1"},
            "unknown key 'study_id'; expected only study, answer, canary, evidence, "
            "evidence_slices, origin, subtask, "
            "verification",
        ),
    ],
)
def test_what_is_wrong_with_a_compact_line_is_named(read, change, message):
    with pytest.raises(InputError, match=rf"questions\.jsonl:1: .*{message}"):
        read(COMPACT | change)


@pytest.mark.parametrize("subtask", ["L01", "C01", "C02", "D01"])
def test_swapped_letters_are_named(read, catalogue, subtask):
    found = catalogue[subtask]
    first, second = found.options[:2]
    about = {name: getattr(found, name) for name in ("tier", "sequence", "answer_type")}
    options = [{"key": second.key, "text": first.text}, {"key": first.key, "text": second.text.upper()}]
    swapped = QUESTION | about | {"subtask": subtask, "options": options, "answer": ["B"]}
    with pytest.raises(
        InputError, match=r"option B is .*, which is option A of .*; take the catalogue's letters"
    ):
        read(swapped)
    options = [{"key": first.key, "text": first.text}, {"key": second.key, "text": "In other words"}]
    assert read(swapped | {"options": options}).num_rows == 1


@given(
    st.sampled_from(["report", "mask", "reader", "phantom"]),
    st.sampled_from([None, "verified", "draft", "Verified", True]),
    st.booleans(),
)
def test_a_sweep_asks_what_somebody_stands_for(tmp_path_factory, catalogue, origin, status, allowed):
    path = tmp_path_factory.mktemp("q") / "questions.jsonl"
    verification = {} if status is None else {"status": status}
    write_questions(path, [COMPACT | {"origin": origin, "verification": verification}])
    if allowed or origin in ("reader", "phantom") or status == "verified":
        assert read_questions(path, catalogue, allow_unverified=allowed).num_rows == 1
    else:
        with pytest.raises(
            InputError, match=r"1 of its 1 questions are not verified, e\.g\. S1:L05 on line 1"
        ):
            read_questions(path, catalogue)


LETTER, LINE = "would be the letter of an option", "expected one line without control characters"
REFUSED = {
    **dict.fromkeys(
        ["A", "b", "C.", "(A)", " [b] ", "Option B", "A and C", "Both A & B", "neither A nor B"], LETTER
    ),
    **dict.fromkeys(["\u0410", "\u0392", "\u24b6", "\U0001d400"], LETTER),  # Cyrillic, Greek, circled, bold
    **{f"Thin{mark}B. Normal": LINE for mark in "\n\r\t\v\f\0\x1c\x7f\x85\u2028\u2029\u202e\ufdd0\ufffc"},
    "\uff21": "holds the full-width letter '\uff21'; .* write 'A'",
    "\uff34hin": "holds the full-width letter",
    " \u200b": "has a blank text",
    "NORMAL  wall": "options A and C have the same text",
    "Normal wa\u2113\u2113": "options A and C have the same text",  # script small l
}
TAKEN = ["Grade A", "Type A or B", "T", "AB", "Vitamin A", "一", "T2 > 50 ms", "Ångström", "α", "A wall"]


def among(text: str) -> list[tuple[str, str]]:
    return [("A", "Normal wall"), ("B", "Bulging"), ("C", text)]


@pytest.mark.parametrize(("text", "said"), REFUSED.items(), ids=map(ascii, REFUSED))
def test_the_option_is_named(text: str, said: str) -> None:
    assert any(re.search(said, problem) and "C" in problem for problem in option_problems(among(text)))


@pytest.mark.parametrize("text", TAKEN)
def test_words_with_a_letter_are_an_option(text: str) -> None:
    assert option_problems(among(text)) == []


def test_letters_are_those_displayed_whatever_the_keys() -> None:
    assert option_problems([("D", "A"), ("E", "Bulging")]) != []
    assert option_problems([("D", "E"), ("E", "Bulging")]) != []
    assert option_problems([("D", "C"), ("E", "Bulging")]) == []


@pytest.mark.parametrize("text", ["B", "Thick\nB. Normal"])
def test_a_question_with_it_is_refused(text: str, tmp_path) -> None:
    record = QUESTION | {"answer": ["A"], "options": [{"key": key, "text": of} for key, of in among(text)]}
    path = tmp_path / "questions.jsonl"
    write_questions(path, [record | {"qa_id": "S2:C02", "options": record["options"][:2]}, record])
    with pytest.raises(InputError, match=r"questions\.jsonl:2: S1:C02: option C "):
        read_questions(path, load_catalogue("openprotocol-1"))
