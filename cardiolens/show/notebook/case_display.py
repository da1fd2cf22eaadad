"""One question with the answers of all arms, shown as a table in a notebook."""

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True, slots=True)
class Answer:
    """One arm's reply and the answer parsed from it."""

    arm_id: str
    channel: str
    status: str
    parse_status: str | None
    parsed: list[str] | None
    correct: bool | None
    request_key: str
    reply: str | None


@dataclass(frozen=True, slots=True)
class Case:
    """One question of one study, without frames; Jupyter shows it as a table."""

    qa_id: str
    study_id: str
    question: str
    options: Mapping[str, str]
    truth: tuple[str, ...]  # keys of the options that are right
    answers: tuple[Answer, ...]

    def _repr_html_(self) -> str:
        options = "".join(f"<li>{_option(key, text, self.truth)}</li>" for key, text in self.options.items())
        head = "".join(f"<th>{name}</th>" for name in ("arm", "read as", "right", "reply"))
        rows = "".join(_row(answer) for answer in self.answers)
        return (
            f"<p><b>{escape(self.qa_id)}</b> {escape(self.question)}</p>"
            f"<ul>{options}</ul><table><tr>{head}</tr>{rows}</table>"
        )


def _option(key: str, text: str, truth: tuple[str, ...]) -> str:
    label = f"{escape(key)}. {escape(text)}"
    return f"<b>{label}</b>" if key in truth else label


def _row(answer: Answer) -> str:
    correct = {True: "yes", False: "no", None: ""}[answer.correct]
    parsed = ", ".join(answer.parsed or ()) or answer.parse_status or answer.status
    cells = (answer.arm_id, parsed, correct, answer.reply or "")
    return f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
