"""Refusal of what needs the answers of a sweep's questions, where some of these are withheld."""

from pathlib import Path

import pyarrow as pa

from cardiolens.base.errors import InputError
from cardiolens.config.sweep import SweepSpec
from cardiolens.protocol.prompts.suggestion import LEADING
from cardiolens.protocol.tasks.withheld_answers import count_withheld


def check_withheld(path: Path, questions: pa.Table, spec: SweepSpec) -> None:
    """Raise InputError if an answer is withheld, and a reader knows or a control looks at the answers."""
    if not (number := count_withheld(questions)):
        return
    told = f"{path}: the answers of {number} of its {questions.num_rows} questions are withheld"
    if knowing := [model.name for model in spec.model if model.answers_from == "truth"]:
        raise InputError(
            f"{told}, and model {knowing[0]} is a simulated reader that answers from them; leave it out "
            "(uniform and constant need no answers), or ask whoever has the answers"
        )
    if suggesting := [control for control in spec.control if control in LEADING]:
        raise InputError(
            f"{told}, and control {suggesting[0]} suggests an answer that is known to be right or wrong; "
            "leave it out"
        )
    if "other_patient" in spec.control:
        raise InputError(
            f"{told}, and control other_patient shows the frames of a patient with another "
            "answer; leave it out"
        )
