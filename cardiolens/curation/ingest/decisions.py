"""Decisions of a person about stacks: JSON Lines, appended one by one and read by the next import.

Ids in a line are the same in every export of the same patients under the same key. Decisions are absolute
(a display, a direction along the normal, phases by rank), so that their meaning does not depend on what the
import proposes. The last line about a stack counts; an undo takes back the previous line.
"""

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from cardiolens.base.errors import InputError
from cardiolens.config.base import Spec
from cardiolens.curation.ingest.conventions import legal_volumes, volume_of
from cardiolens.storage.decision_log import DecisionLog, read_decision_lines
from cardiolens.study.anatomy import sequences
from cardiolens.study.volume_manifest import DisplayTransform

SCHEMA = "decision-1"
REFUSED = {  # why a decision does not fit its stack
    "two_stacks": "another stack is confirmed as the same volume; confirm one of them",
    "sequence": "a cine or a first pass has several phases, other sequences one; choose another sequence",
    "spacing": "the size of its voxels is not settled by it; state spacing (P on the page of confirm)",
    "phase": "ED and ES are phases of a cine, onset and peak those of a first pass, counted from 0",
}

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
    # null: as the import found it
    base_first: bool | None = None  # whether the first slice, in the chosen order, is the base
    mask: bool | None = None  # whether the mask is of this volume
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
                f"{', '.join(map(' '.join, legal_volumes().values()))}"
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
        return volume_of(self.sequence, self.view)

    @property
    def marks(self) -> dict[str, int]:
        """The marked phases by the name of their moment."""
        marks = {name: getattr(self, name) for name in ("ed_phase", "es_phase", "t_on", "t_peak")}
        return {name: phase for name, phase in marks.items() if phase is not None}

    def refused(
        self, n_phases: int, declared: str, places_mm: Container[str], *, is_size_open: bool
    ) -> str | None:
        """Return why a stack with `n_phases` contradicts the choice: `sequence`, `phase`, `spacing`; or None.

        `declared`: the sequence by a layout; some sets give one phase of a cine. `places_mm`: the places of
        the header that hold a size of voxels; `is_size_open`: whether they leave it open.
        """
        if self.status == "excluded":
            return None
        over_time = sequences()[self.sequence or ""].over_time
        if (over_time == "nothing") != (n_phases == 1) and self.sequence != declared:
            return "sequence"
        legal = {"cycle": {"ed_phase", "es_phase"}, "first_pass": {"t_on", "t_peak"}}.get(over_time, set())
        if not self.marks.keys() <= legal or any(phase >= n_phases for phase in self.marks.values()):
            return "phase"
        if isinstance(self.spacing, str):
            return None if self.spacing in places_mm else "spacing"
        return "spacing" if self.spacing is None and is_size_open else None


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


Choices = Mapping[str, Choice]


@dataclass
class Decisions:
    """Choices by study and stack; of a study, every state since the first line, for undo."""

    states: dict[str, list[dict[str, Choice]]] = field(default_factory=dict)
    lines: Counter[str] = field(default_factory=Counter)  # by study; the count is its revision

    def of(self, study_id: str) -> dict[str, Choice]:
        """Return the choices of one study by stack."""
        return self.states.get(study_id, [{}])[-1]

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
        self._append(study_id, stacks=dict(stacks))

    def undo(self, study_id: str) -> None:
        """Append an undo of the last decision on a study; InputError if there is none."""
        self._append(study_id, undo=True)

    def _append(self, study_id: str, **says: Any) -> None:
        line = Line(at=datetime.now(UTC).isoformat(timespec="seconds"), study_id=study_id, **says)
        self.decisions.check(line)
        self._log.append(line)
        self.decisions.add(line)

    def close(self) -> None:
        """Let another process write."""
        self._log.close()


def contradicted(choices: Sequence[Choice]) -> set[str]:
    """Return the volume ids that several choices confirm."""
    named = [choice.volume_id for choice in choices if choice.status == "confirmed"]
    return {volume for volume in named if named.count(volume) > 1}
