"""Solved examples in words: a question of another patient with its answer, before the question asked."""

from collections.abc import Collection

from cardiolens.protocol.prompts.prompt_words import words
from cardiolens.protocol.prompts.question import AskedQuestion
from cardiolens.protocol.tasks.legal import letters_of


def example_block(question: str, reply: str, number: int, n: int) -> str:
    """Render an example: a heading, the question as it is asked, and the reply that solves it."""
    heading = words().examples["before"].format(number=number, n=n)
    return f"{heading}\n{question}\n{reply}\n\n"


def after_examples(examples: str) -> str:
    """Add the line after the last example, which says that the question to answer begins."""
    return f"{examples}{words().examples['after']}\n"


def solution(question: AskedQuestion, answer: Collection[str], answer_format: str) -> str:
    """Write an answer as a reply in this form would be, in the letters that the question displays."""
    letters = [
        letter for letter, key in zip(letters_of(question.keys), question.keys, strict=True) if key in answer
    ]
    quoted = ", ".join(f'"{letter}"' for letter in letters)
    form = "choice" if question.letters_first else answer_format
    return words().examples[form].format(letters=", ".join(letters), quoted=quoted)
