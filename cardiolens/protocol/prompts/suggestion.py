"""A colleague's suggestion in a question, drawn with a seed: wrong under control `leading`, else right."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from cardiolens.base.digest import digest_of
from cardiolens.protocol.prompts.prompt_words import words
from cardiolens.protocol.prompts.question import AskedQuestion

SEED = 2026
LEADING: Mapping[str, bool] = {"leading": False, "leading_right": True}  # control: whether it is right


def suggested(control: str, qa_id: str, keys: Collection[str], answer: Collection[str]) -> str | None:
    """Return the option that is suggested; None where a control suggests none or no option fits."""
    if control not in LEADING:
        return None
    fitting = [key for key in keys if (key in answer) == LEADING[control]]
    return min(fitting, key=lambda key: digest_of([SEED, control, qa_id, key]), default=None)


def with_suggestion(question: AskedQuestion, key: str | None) -> AskedQuestion:
    """Add to the words of a question that a colleague would pick an option; None leaves it unchanged."""
    if key is None:
        return question
    letter, text = question.displayed[question.keys.index(key)]
    form = words().suggestions["several" if question.answer_type == "multi" else "one"]
    return replace(question, question=form.format(question=question.question, letter=letter, text=text))
