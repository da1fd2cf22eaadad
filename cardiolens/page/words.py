"""Subtasks and their answers in words, as far as the protocol is known."""

from cardiolens.page.facts import Facts
from cardiolens.stats.confusion import JOINT

_PARENT, _SUBTYPE = "D01", "D02"


def subtask_words(facts: Facts, subtask: str) -> str:
    """A subtask with what it asks for, e.g. C10 wall motion."""
    if subtask == JOINT:
        return f"{JOINT} diagnosis"
    known = facts.subtasks.get(subtask)
    return f"{subtask} {known.field.replace('_', ' ')}" if known else subtask


def answer_words(facts: Facts, subtask: str, keys: str) -> str:
    """An answer with its text, e.g. A Normal; of joined diagnoses the subtype's."""
    if subtask == JOINT:
        subtask, keys = (_SUBTYPE, keys[1:]) if len(keys) == 2 else (_PARENT, keys)
        return answer_words(facts, subtask, keys)
    known = facts.subtasks.get(subtask)
    texts = [option.text for option in known.options if option.key == keys] if known else []
    return f"{keys} {texts[0]}" if texts else keys
