"""Frames that were sent for questions, and whether the slices that show the answer were among them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

from cardiolens.inference.plan.frame_views import BLANK
from cardiolens.show.page.case_viewer.item_sources import CaseKey, Sources, read_stages
from cardiolens.storage import schemas
from cardiolens.study.shards import read_volumes

ALL_SHOWN, PARTLY, NOT_SHOWN, NOT_KNOWN = "s", "p", "n", "?"
_REQUEST = ("arm_id", "qa_id", "study_id", "frames_study_id", "frames", "flags", "status", "request_key")
_MOVING = 2  # phases of a slice on which motion can be seen

Place = tuple[str, int]  # volume_id, idx
EvidenceSlices = Sequence[Mapping[str, Any]]  # rows of `evidence`: volume_id, slice, phases


@dataclass(frozen=True, slots=True)
class Sent:
    """What a request shows: frames in order, and their study; nothing was sent unless it is planned."""

    study: str | None  # another patient's under a control
    frames: tuple[Place, ...]
    flags: tuple[str, ...]
    status: str

    def seen_of(self, study: str) -> tuple[Place, ...]:
        """The frames by which a study was seen: none under a control that shows black or another patient."""
        is_seen = self.study == study and self.status == schemas.PLANNED and BLANK not in self.flags
        return self.frames if is_seen else ()


def frames_sent(sources: Sources, keys: Collection[CaseKey]) -> dict[CaseKey, Sent]:
    """Return the frames of cases that were asked; of a chain, the frames of all its requests."""
    by_name = {(sources.arms[arm], sources.qa_id(question)): (question, arm) for question, arm in keys}
    sent: dict[CaseKey, Sent] = {}
    for run, table in sources.requests(keys, _REQUEST):
        stages = read_stages(run, pc.unique(table["request_key"]))
        for row in table.to_pylist():
            case = by_name[row["arm_id"], row["qa_id"]]
            sent.setdefault(case, sent_of(row, stages.get(row["request_key"], ())))
    return sent


def sent_of(row: Mapping[str, Any], stages: Sequence[Mapping[str, Any]]) -> Sent:
    """What a row of `requests` showed, with the stages of its chain."""
    return Sent(row["frames_study_id"], _frames(row, stages), tuple(row["flags"]), row["status"])


def _frames(row: Mapping[str, Any], stages: Sequence[Mapping[str, Any]]) -> tuple[Place, ...]:
    """The frames of a request without repeats; a stage without frames of its own shows those of its chain."""
    lists = [row["frames"] if stage["frames"] is None else stage["frames"] for stage in stages]
    frames = [frame for listed in (lists or [row["frames"]]) for frame in listed or ()]
    return tuple(dict.fromkeys((frame["volume_id"], frame["idx"]) for frame in frames))


def shown_letters(sources: Sources, keys: Iterable[CaseKey], index: "EvidenceIndex") -> dict[CaseKey, str]:
    """Return the letter of each case that was asked and has known evidence slices."""
    with_evidence = [key for key in keys if index.slices(sources.qa_id(key[0]))]
    sent = frames_sent(sources, with_evidence)
    return {key: index.letter(sources, key[0], case) for key, case in sent.items()}


def shown_under(sources: Sources, arm: int, index: "EvidenceIndex") -> str:
    """Return a letter per question under an arm; `NOT_KNOWN` for one without evidence slices."""
    n_questions = sources.questions.num_rows
    letters = shown_letters(sources, [(question, arm) for question in range(n_questions)], index)
    return "".join(letters.get((question, arm), NOT_KNOWN) for question in range(n_questions))


def evidence_index(sources: Sources) -> "EvidenceIndex":
    """Return what is known of evidence slices in a run; volumes are read only where some are."""
    if not any(row["slices"] for row in sources.evidence.values()):
        return EvidenceIndex({}, {}, frozenset())
    volumes = read_volumes(sources.header.specs[0].store)
    columns = [volumes[name].to_pylist() for name in ("study_id", "volume_id", "n_phases")]
    n_phases = {(study, volume_id): count for study, volume_id, count in zip(*columns, strict=True)}
    subtasks = sources.header.subtasks.values()
    return EvidenceIndex(
        sources.evidence, n_phases, frozenset(subtask.id for subtask in subtasks if subtask.temporal)
    )


@dataclass(frozen=True, slots=True)
class EvidenceIndex:
    """Which evidence slices of a question were sent.

    A slice was if one of its frames was, at a phase that shows the answer; for a question on motion, if two
    phases were.
    """

    evidence: Mapping[str, Mapping[str, Any]]  # rows of `evidence` by question
    n_phases: Mapping[tuple[str, str], int]  # by study and volume
    temporal: Collection[str]  # subtasks that ask about motion

    def slices(self, qa_id: str) -> EvidenceSlices:
        """The evidence slices of a question; none where they are not known."""
        return (self.evidence.get(qa_id) or {}).get("slices") or ()

    def letter(self, sources: Sources, question: int, sent: Sent) -> str:
        """Whether all, some or none of a question's evidence slices were sent, as a letter."""
        slices = self.slices(sources.qa_id(question))
        if not slices:
            return NOT_KNOWN
        study = sources.studies[sources.study[question]]
        moving = sources.questions["subtask"][question].as_py() in self.temporal
        frames = sent.seen_of(study)
        count = sum(self._is_sent(study, evidence, frames, moving=moving) for evidence in slices)
        return ALL_SHOWN if count == len(slices) else PARTLY if count else NOT_SHOWN

    def _is_sent(
        self, study: str, evidence: Mapping[str, Any], frames: Sequence[Place], *, moving: bool
    ) -> bool:
        n_phases = self.n_phases.get((study, evidence["volume_id"]))
        if n_phases is None:  # the study was prepared again without the volume
            return False
        phases = {
            idx % n_phases
            for volume_id, idx in frames
            if volume_id == evidence["volume_id"] and idx // n_phases == evidence["slice"]
        }
        telling = set(evidence["phases"] or range(n_phases))
        return len(phases & telling) >= min(_MOVING if moving else 1, len(telling))
