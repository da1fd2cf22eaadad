"""Decisions of a person about stacks: JSON Lines, appended one by one and read by the next import.

Ids in a line are the same in every export of the same patients under the same key. Decisions are absolute
(a display, a direction along the normal, phases by rank), so that their meaning does not depend on what the
import proposes. The last line about a stack counts; an undo takes back the previous line.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from cardiolens.base.errors import InputError
from cardiolens.config.base import Spec
from cardiolens.storage.decision_log import DecisionLog, read_decision_lines
from cardiolens.study.anatomy import sequences
from cardiolens.study.volume_manifest import DisplayTransform

SCHEMA = "decision-1"

Phase = Annotated[int, Field(ge=0)]
Length = Annotated[float, Field(gt=0.05, lt=100)]  # mm


class Choice(Spec):
    """A person's decision about one stack; an excluded stack has no further fields."""

    status: Literal["confirmed", "excluded"]
    sequence: str | None = None
    view: str | None = None
    display: DisplayTransform | None = None
    along_normal: bool | None = None  # whether slice numbers grow along the normal (rows x columns)
    ed_phase: Phase | None = None
    es_phase: Phase | None = None
    spacing: Literal["sform", "pixdim"] | tuple[Length, Length, Length] | None = None  # columns, rows, slices
    base_first: bool | None = (
        None  # whether the first slice, in the chosen order, is the base; null: as found
    )
    mask: bool | None = None  # whether the mask that the import found is of this volume; null: as found
    t_on: Phase | None = None  # of a first pass: when contrast reaches the left ventricle, and when it peaks
    t_peak: Phase | None = None

    @model_validator(mode="after")
    def _check_complete(self) -> "Choice":
        if self.status == "excluded":
            return self
        if None in (self.sequence, self.view, self.display, self.along_normal):
            raise ValueError("a confirmed stack lacks sequence, view, display or along_normal; give all")
        if not self.volume_id:
            raise ValueError(
                f"no study holds a volume {self.sequence} {self.view}; choose from "
                f"{', '.join(legal_volumes())}"
            )
        if self.ed_phase is not None and self.ed_phase == self.es_phase:
            raise ValueError(f"end-diastole and end-systole are both phase {self.ed_phase}; correct one")
        if (self.t_on is None) != (self.t_peak is None) or (self.t_on or 0) > (self.t_peak or 0):
            raise ValueError(
                f"onset is {self.t_on} and peak {self.t_peak}; expected both, the onset not after the peak"
            )
        return self

    @property
    def volume_id(self) -> str:
        """Volume id of the chosen sequence and view; empty if studies have no such volume."""
        known = sequences().get(self.sequence or "")
        return known.volume_id(self.view) if known is not None and self.view in known.views else ""

    def refused(self, n_phases: int, declared: str = "") -> str | None:
        """Return why a stack with `n_phases` contradicts the choice (`sequence`, `phase`), or None.

        `declared`: the sequence by a layout; some sets give one phase of a cine.
        """
        if self.status == "excluded":
            return None
        is_still = sequences()[self.sequence or ""].over_time == "nothing"
        if is_still != (n_phases == 1) and self.sequence != declared:
            return "sequence"
        over_time = sequences()[self.sequence or ""].over_time
        marks = {"cycle": (self.ed_phase, self.es_phase), "first_pass": (self.t_on, self.t_peak)}
        phases_of = {name: [phase for phase in pair if phase is not None] for name, pair in marks.items()}
        wrong = any(
            phases and (name != over_time or max(phases) >= n_phases) for name, phases in phases_of.items()
        )
        return "phase" if wrong else None


class Line(Spec):
    """One line: choices by stack (null withdraws a choice), or an undo of the previous line."""

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
    """List the legal choices as "sequence view"."""
    return [f"{name} {view}" for name, known in sequences().items() for view in known.views]


Choices = Mapping[str, Choice]


@dataclass
class Decisions:
    """Choices by study and stack, with the history for undo."""

    states: dict[str, list[dict[str, Choice]]] = field(default_factory=dict)  # of a study, the last counts
    lines: Counter[str] = field(default_factory=Counter)  # by study

    def of(self, study_id: str) -> dict[str, Choice]:
        """Return the choices of one study by stack."""
        return self.states.get(study_id, [{}])[-1]

    def revision(self, study_id: str) -> int:
        """Return the number of lines about a study, which grows with each decision."""
        return self.lines[study_id]

    def add(self, line: Line) -> None:
        """Apply a line; InputError for an undo without an earlier decision."""
        self.check(line)
        self.lines[line.study_id] += 1
        states = self.states.setdefault(line.study_id, [{}])
        if line.undo:
            states.pop()
            return
        merged = states[-1] | line.stacks
        states.append({stack: choice for stack, choice in merged.items() if choice is not None})

    def check(self, line: Line) -> None:
        """Raise InputError for an undo without an earlier decision."""
        if line.undo and len(self.states.get(line.study_id, [])) < 2:
            raise InputError(f"{line.study_id}: no decision is left that could be taken back")

    @property
    def count(self) -> int:
        """Number of stacks with a choice."""
        return sum(len(self.of(study_id)) for study_id in self.states)


def read_decisions(path: Path) -> Decisions:
    """Read a file of decisions without a truncated last line; InputError for any other fault."""
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
    """Append-only file of decisions with one writer; each line is on disk before the call returns."""

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
        """Append an undo of the last decision on a study; InputError if there is none."""
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
    """Return the volume ids that several choices confirm."""
    named = [choice.volume_id for choice in choices if choice.status == "confirmed"]
    return {volume for volume in named if named.count(volume) > 1}
