"""Other wordings of every question, which must ask the same (protocol 16.10)."""

import pytest

from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.protocol.tasks.data_files import wording_problems

SUBTASKS = load_catalogue("openprotocol-1").subtasks
OPTIONS = ["Normal", "Mildly reduced", "Dilated (DCM)"]


def test_every_question_has_two_further_wordings():
    assert len(SUBTASKS) == 32 + 2 + 4
    assert {name for name, subtask in SUBTASKS.items() if len(subtask.wordings) < 2} == set()
    said = [text for subtask in SUBTASKS.values() for text in (subtask.question, *subtask.wordings)]
    assert len(set(said)) == len(said)


@pytest.mark.parametrize("name", sorted(SUBTASKS))
def test_wordings_mean_the_same(name):
    subtask = SUBTASKS[name]
    texts = [option.text for option in subtask.options]
    assert wording_problems(subtask.question, subtask.wordings, texts) == []
    end = "." if subtask.answer_type == "report" else ("?", "al)", "ar)")
    for wording in subtask.wordings:
        assert wording.endswith(end)
        assert abs(len(wording.split()) - len(subtask.question.split())) <= 8
        if subtask.answer_type == "multi":
            assert " one " not in wording


@pytest.mark.parametrize(
    ("wording", "problem"),
    [
        ("How is left ventricular systolic function?", "repeat the question"),
        ("How is right ventricular systolic function?", "do not both say 'left'"),
        ("How is left ventricular diastolic function?", "do not both say 'systol'"),
        ("How is left ventricular systolic function, normal or not?", "negates"),
        ("Is left ventricular systolic function mildly reduced?", "gives away the option 'Mildly reduced'"),
        ("Is left ventricular systolic function dilated?", "gives away the option 'Dilated"),
        ("Is left ventricular systolic function abnormal?", "do not both say 'abnormal'"),
        ("How is left ventricular systolic \ufffc function?", "holds U"),
    ],
)
def test_a_wording_that_asks_something_else_is_found(wording, problem):
    question = "How is left ventricular systolic function?"
    assert any(problem in one for one in wording_problems(question, [wording], OPTIONS))
