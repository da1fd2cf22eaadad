"""Other wordings of every question."""

from cardiolens.protocol.tasks.catalogue import load_catalogue

SUBTASKS = load_catalogue("openprotocol-1").subtasks


def test_every_question_has_two_further_wordings():
    assert len(SUBTASKS) == 32 + 2 + 4
    assert {name for name, subtask in SUBTASKS.items() if len(subtask.wordings) < 2} == set()
    said = [text for subtask in SUBTASKS.values() for text in (subtask.question, *subtask.wordings)]
    assert len(set(said)) == len(said)
