"""A question in a prompt: its words and options, and the words around solved examples."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from cardiolens.protocol.tasks.catalogue import AnswerType, Catalogue, Subtask
from cardiolens.protocol.tasks.legal import letters_of
from cardiolens.study.anatomy import CASE_IMAGES, HEART, PICTURE, Anatomy, heart, read_yaml


@cache
def words() -> dict[str, Any]:
    """Words for rules, closing lines, and questions that belong to no sequence of a study, loaded once."""
    return read_yaml(Path(__file__).with_name("words.yaml"))


QuestionKind = Literal["question", "diagnosis", "report", "case", "picture"]


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question as a model sees it; options in the order displayed, with the catalogue's letters."""

    subtask: str
    sequence: str
    question: str
    answer_type: AnswerType
    options: tuple[tuple[str, str], ...] = ()  # original key, text
    exclusive: tuple[str, ...] = ()
    checklist: tuple[str, ...] = ()
    fields: tuple[Subtask, ...] = ()  # of a report: the subtasks that define them
    protocol: str = HEART  # name or folder of the one that has its templates
    letters_first: bool = False  # the prompt asks for a reply that begins with its letters
    reversed: bool = False  # ordinal options run from most to least severe
    units: tuple[str, ...] = ()  # of a number
    ranks: int = 0  # names in a ranking
    paper: tuple[str, ...] = ()  # points of prompt style `paper`; empty: those of the checklist
    anatomy: Anatomy = field(default_factory=heart, repr=False)

    @property
    def kind(self) -> QuestionKind:
        if self.answer_type == "report":
            return "report"
        if self.sequence == CASE_IMAGES:
            return "case"
        if self.sequence == PICTURE:
            return "picture"
        return "diagnosis" if self.sequence == "multi" else "question"

    @property
    def keys(self) -> tuple[str, ...]:
        """The original option keys in the order displayed."""
        return tuple(key for key, _ in self.options)

    @property
    def displayed(self) -> tuple[tuple[str, str], ...]:
        """Letter and text of each option."""
        texts = (text for _, text in self.options)
        return tuple(zip(letters_of(self.keys), texts, strict=True))

    def letters(self, keys: Collection[str]) -> list[str]:
        """Return the letters of the options with these original keys."""
        lettered = zip(letters_of(self.keys), self.keys, strict=True)
        return [letter for letter, key in lettered if key in keys]

    @property
    def sequence_name(self) -> str:
        """What the report or study is of, in words."""
        if self.sequence == "multi":
            return self.anatomy.words
        kind = self.anatomy.sequences.get(self.sequence)
        return str(words()["sequences"][self.sequence]) if kind is None else kind.words

    @property
    def rule(self) -> str:
        """Instruction on how many options to pick."""
        alone = self.letters(self.exclusive)
        exclusive = [words()["exclusive"].format(letter=letter) for letter in alone]
        order = "ordinal_reversed" if self.reversed else self.answer_type
        rule = words()["rules"][order].format(units=" or ".join(self.units), ranks=self.ranks)
        return " ".join([rule, *exclusive])

    @property
    def schema(self) -> str:
        """Form of the JSON object that a report question."""
        lines = ",\n".join(f'  "{field.field}": {_values(field)}' for field in self.fields)
        return f'{{"fields": {{\n{lines}}},\n"findings": text, "impression": text}}'


@dataclass(frozen=True, slots=True)
class TextRequest:
    """A question about a text; its reply is JSON that conforms to a schema."""

    text_id: str
    name: str  # of the question, among those on the same text
    system: str
    prompt: str
    schema: str


def asked_of(
    subtask: Subtask, catalogue: Catalogue, question: str, options: tuple[tuple[str, str], ...]
) -> AskedQuestion:
    """Return a question of a subtask as a model sees it, in words and options of its own."""
    return AskedQuestion(
        subtask=subtask.id,
        sequence=subtask.sequence,
        question=question,
        answer_type=subtask.answer_type,
        options=options,
        exclusive=subtask.exclusive,
        checklist=subtask.checklist,
        fields=catalogue.report_fields(subtask),
        protocol=catalogue.loaded_from[catalogue.asked_by[subtask.id][0]],
        letters_first=subtask.letters_first,
        units=() if subtask.quantity is None else subtask.quantity.shown,
        ranks=subtask.ranks,
        paper=catalogue.paper_points.get(subtask.id, ()),
        anatomy=catalogue.anatomy,
    )


def _values(field: Subtask) -> str:
    values = ", ".join(json.dumps(option.text) for option in field.options)
    return f"list from [{values}]" if field.answer_type == "multi" else f"one of {values}"


def examples_block(solved: Sequence[tuple[str, str]]) -> str:
    """Render solved questions with their replies, and the line before the question to answer."""
    form = words()["examples"]
    blocks = [
        f"{form['before'].format(number=number, n=len(solved))}\n{question}\n{reply}\n\n"
        for number, (question, reply) in enumerate(solved, start=1)
    ]
    return f"{''.join(blocks)}{form['after']}\n"


def solution(question: AskedQuestion, answer: Collection[str], answer_format: str) -> str:
    """Write an answer as a reply in this form would be, in the letters that the question displays."""
    letters = question.letters(answer)
    quoted = ", ".join(f'"{letter}"' for letter in letters)
    form = "choice" if question.letters_first else answer_format
    reply: str = words()["examples"][form]
    return reply.format(letters=", ".join(letters), quoted=quoted)
