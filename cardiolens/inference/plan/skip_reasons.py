"""Skip requests that cannot be asked as planned, and say why."""

from collections.abc import Collection
from dataclasses import replace

from cardiolens.config.arms import Arm
from cardiolens.inference.plan.planned_question import PlannedQuestion
from cardiolens.inference.plan.planned_study import ExampleBlock, View
from cardiolens.protocol.prompts.case_block import lacking
from cardiolens.protocol.prompts.case_text import CaseText, Gold
from cardiolens.protocol.select.selection import Selection
from cardiolens.protocol.tasks.catalogue import OPEN


def with_gold(view: View, case_text: CaseText | None, gold: Gold) -> View:
    """Return the view; skip the request if the setting needs text that the case does not have."""
    frames = view.told or view.selection.frames
    why = None if case_text is None else lacking(case_text, frames, gold)
    if why is None or view.selection.skipped is not None:
        return view
    return replace(view, selection=Selection((), view.selection.flags, why))


def with_examples(view: View, question: PlannedQuestion, arm: Arm, solved: ExampleBlock) -> View:
    """Return the view; skip the request if its prompt lacks the examples that it should show."""
    has_all = solved.examples or not arm.prompt.shots or question.asked.answer_type in OPEN
    if has_all or view.selection.skipped is not None:
        return view
    why = f"fewer than {arm.prompt.shots} solved examples of other patients"
    return replace(view, selection=Selection((), view.selection.flags, why))


def as_read(view: View, qa_id: str, arm: Arm, read: Collection[str] | None) -> View:
    """Return the view; skip the request if a person did not read the question, or not in this form.

    `read` are the questions that the person read; None for a model.
    """
    if read is None:
        return view
    changed = arm.control != "none" or arm.wording or arm.prompt.steps != "none"
    changed = changed or arm.selector.kind == "self" or arm.prompt.shots
    changed = changed or arm.prompt.cine == "video"
    if view.selection.skipped is not None or (qa_id in read and not changed):
        return view
    why = "not read in this form" if changed else "not read"
    return replace(view, selection=Selection((), view.selection.flags, why))
