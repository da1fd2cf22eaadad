"""Replies as models write them: ours in judging/replies.yaml, and those beside the repository."""

import json
from pathlib import Path

import pytest
import yaml

from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.score.verdicts.parse import parse_answer

OURS = yaml.safe_load((Path(__file__).parent / "replies.yaml").read_text(encoding="utf-8"))
SHARED = Path(__file__).parents[5] / "shared" / "judging" / "replies.json"
SUBTASKS = load_catalogue("openprotocol-1").subtasks


def reading(subtask_id: str, reply: str, cut: bool) -> str:
    subtask = SUBTASKS[subtask_id]
    options = tuple((option.key, option.text) for option in subtask.options)
    return "".join(parse_answer(reply, options, subtask.answer_type, subtask.exclusive, cut=cut).keys)


@pytest.mark.full
@pytest.mark.parametrize(
    ("where", "reads", "reply"), [(where, *entry) for where, entries in OURS.items() for entry in entries]
)
def test_a_reply_is_read_as_decided(where: str, reads: str, reply: str) -> None:
    found = reading(where.removeprefix("cut "), reply, cut=where.startswith("cut "))
    assert found or "none" in reads.split("/"), "not read"
    assert not found or found in reads.split("/")


@pytest.mark.skipif(not SHARED.is_file(), reason="no replies beside the repository (../shared/judging)")
def test_of_the_shared_replies_none_is_read_wrong_and_nine_in_ten_are_read() -> None:
    replies = json.loads(SHARED.read_text(encoding="utf-8"))
    found = [reading(one["subtask"], one["reply"], bool(one["cut"])) for one in replies]
    missed = [
        (one["reply"], said) for one, said in zip(replies, found, strict=True) if said not in one["accept"]
    ]
    assert [pair for pair in missed if pair[1]] == []
    assert len(missed) <= len(replies) / 10
