"""Prompts of what a model writes itself about a MedThinkVQA case before its answer."""

from typing import Literal

from cardiolens.protocol.dialogue.pending import mark
from cardiolens.protocol.prompts.case_discussion import SECTIONS
from cardiolens.protocol.prompts.question import AskedQuestion

CaseSteps = Literal["none", "self", "discussion"]
"""self: findings of each image, then a summary. discussion: a teaching discussion of the case."""

_IMAGES = "Step 1: findings of each image, as you described them:"
_FINDINGS = "Step 2: imaging findings of the case, as you summarised them:"
_DISCUSSION = "Case discussion, as you wrote it:"


def before_answer(
    steps: CaseSteps, asked: AskedQuestion, n_images: int, ending: str
) -> tuple[tuple[str, ...], str]:
    """Return the texts after the images: one for each request before the answer, and that of the answer.

    `ending` is the text that asks for the answer alone.
    """
    if steps == "self":
        first, second, last = steps_before(ending, n_images)
        return (first, second), last
    if steps == "discussion":
        return (_discuss(asked),), f"{_DISCUSSION}\n{mark(0)}\n{ending}"
    return (), ending


def steps_before(ending: str, n_images: int) -> tuple[str, str, str]:
    """Return the texts after the images for step 1, step 2 and the answer, which ends with `ending`."""
    first = (
        f"Step 1: describe the findings of each of the {n_images} images above, one line for each image, in "
        "their order, as `Image 1: ...`. Do not name a diagnosis."
    )
    images = f"{_IMAGES}\n{mark(0)}\n"
    second = (
        f"{images}Step 2: summarise the imaging findings of the whole case in one paragraph. Do not name a "
        "diagnosis."
    )
    return first, second, f"{images}{_FINDINGS}\n{mark(1)}\n{ending}"


def _discuss(asked: AskedQuestion) -> str:
    """Ask for the discussion; the diagnoses are shown, because those of the benchmark name no others."""
    options = "\n".join(f"{letter}. {text}" for letter, text in asked.displayed)
    headings = "\n".join(f"{name}:" for name in SECTIONS)
    return (
        f"Question: {asked.question}\n{options}\n"
        "Decide for one of these diagnoses, and write a discussion that teaches the case to students of "
        "radiology. Write these six sections in this order, each under its heading on a line of its own:\n"
        f"{headings}"
    )
