"""Decisions of a person about stacks: one JSON object a line, appended at once, read again by the import.

A line is keyed by ids that a second export of the same patients shares under the same key. What a decision
says is absolute (a display, a direction along the normal, phases by rank), so that it means the same whatever
the import proposes by then. The last line about a stack counts; an undo takes back the line before it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from cardiolens.base.errors import InputError
from cardiolens.config.base import Spec
from cardiolens.storage.decision_log import DecisionLog, read_decision_lines
from cardiolens.study.manifest import DisplayTransform
from cardiolens.study.sequences import sequences

SCHEMA = "decision-1"

Phase = Annotated[int, Field(ge=0)]


class Choice(Spec):
    """What a person says of one stack; what an excluded one would have been is not kept."""

    status: Literal["confirmed", "excluded"]
    sequence: str | None = None
    view: str | None = None
    display: DisplayTransform | None = None
    along_normal: bool | None = None  # whether slices are counted along the normal (rows x columns)
    ed_phase: Phase | None = None
    es_phase: Phase | None = None

    @model_validator(mode="after")
    def _whole(self) -> "Choice":
        if self.status == "excluded":
            return self
        if None in (self.sequence, self.view, self.display, self.along_normal):
            raise ValueError("lacks what a confirmed stack is; give sequence, view, display and along_normal")
        if not self.volume_id:
            raise ValueError(
                f"no study holds a volume {self.sequence} {self.view}; choose from "
                f"{', '.join(legal_volumes())}"
            )
        if self.ed_phase is not None and self.ed_phase == self.es_phase:
            raise ValueError(f"end-diastole and end-systole are both phase {self.ed_phase}; correct one")
        return self

    @property
    def volume_id(self) -> str:
        """Id of the volume that a confirmed stack is; empty where no study holds such a one."""
        known = sequences().get(self.sequence or "")
        return known.volume_id(self.view) if known is not None and self.view in known.views else ""

    def refused(self, n_phases: int) -> str | None:
        """Why it cannot be said of a stack with a number of phases; None where it can."""
        if self.status == "excluded":
            return None
        if (sequences()[self.sequence or ""].over_time == "nothing") != (n_phases == 1):
            return "sequence"
        phases = [phase for phase in (self.ed_phase, self.es_phase) if phase is not None]
        is_cycle = sequences()[self.sequence or ""].over_time == "cycle"
        return "phase" if phases and (not is_cycle or max(phases) >= n_phases) else None


class Line(Spec):
    """One decision: choices by stack, null where none is made any longer; or an undo of the one before."""

    at: str
    study_id: str
    stacks: dict[str, Choice | None] = Field(default_factory=dict)
    undo: bool = False

    @model_validator(mode="after")
    def _says_one_thing(self) -> "Line":
        if self.undo == bool(self.stacks):
            raise ValueError("says nothing or two things; give either stacks or undo")
        return self


def legal_volumes() -> list[str]:
    """All sequences and views that a stack can be confirmed as, in words."""
    return [f"{name} {view}" for name, known in sequences().items() for view in known.views]


Choices = Mapping[str, Choice]


@dataclass
class Decisions:
    """Choices by study and stack, with what an undo takes back."""

    studies: dict[str, dict[str, Choice]] = field(default_factory=dict)
    before: dict[str, list[dict[str, Choice]]] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)  # by study

    def of(self, study_id: str) -> dict[str, Choice]:
        """Choices of one study by stack."""
        return self.studies.get(study_id, {})

    def revision(self, study_id: str) -> int:
        """A number that tells whether a study was decided on since."""
        return self.lines.get(study_id, 0)

    def can_undo(self, study_id: str) -> bool:
        """Whether a study has a decision that could be taken back."""
        return bool(self.before.get(study_id))

    def add(self, line: Line) -> None:
        """Take in a line; InputError for an undo where nothing was decided."""
        self.check(line)
        self.lines[line.study_id] = self.revision(line.study_id) + 1
        history = self.before.setdefault(line.study_id, [])
        if line.undo:
            self.studies[line.study_id] = history.pop()
            return
        history.append(self.of(line.study_id))
        merged = self.of(line.study_id) | line.stacks
        self.studies[line.study_id] = {
            stack: choice for stack, choice in merged.items() if choice is not None
        }

    def check(self, line: Line) -> None:
        """Raise InputError for an undo where nothing is decided."""
        if line.undo and not self.can_undo(line.study_id):
            raise InputError(f"{line.study_id}: nothing is decided that could be taken back")

    @property
    def count(self) -> int:
        """Number of stacks about which something is decided."""
        return sum(map(len, self.studies.values()))


def read_decisions(path: Path) -> Decisions:
    """Read a file of decisions; a last line that was cut off is left out. InputError for any other fault."""
    decisions = Decisions()
    name = f"decisions={path}"
    try:
        for number, line in read_decision_lines(path, Line, SCHEMA, name=name):
            try:
                decisions.add(line)
            except InputError as error:
                raise InputError(f"{name}: line {number}: {error}; remove it") from None
    except OSError as error:
        raise InputError(
            f"{name}: cannot be read ({error.strerror}); give the file that confirm writes"
        ) from None
    return decisions


class Ledger:
    """A file of decisions that one process appends to; each line is on the disk when `append` returns."""

    def __init__(self, path: Path) -> None:
        self._log = DecisionLog[Line](path, SCHEMA, name=f"decisions={path}", writer="confirm")
        try:
            self.decisions = read_decisions(path)
            self._log.mend()
        except InputError:
            self.close()
            raise

    def decide(self, study_id: str, stacks: Mapping[str, Choice | None]) -> None:
        """Append choices about stacks of one study."""
        self._append(Line(at=_now(), study_id=study_id, stacks=dict(stacks)))

    def undo(self, study_id: str) -> None:
        """Append that the last decision on a study is taken back; InputError where there is none."""
        self._append(Line(at=_now(), study_id=study_id, undo=True))

    def _append(self, line: Line) -> None:
        self.decisions.check(line)
        self._log.append(line)
        self.decisions.add(line)

    def close(self) -> None:
        self._log.close()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def contradicted(choices: Sequence[Choice]) -> set[str]:
    """Volumes that more than one of some choices confirm."""
    named = [choice.volume_id for choice in choices if choice.status == "confirmed"]
    return {volume for volume in named if named.count(volume) > 1}
