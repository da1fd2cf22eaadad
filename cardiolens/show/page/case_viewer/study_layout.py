"""The whole study for the case viewer: its volumes, how their slices lie, and what was sent of it."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base.errors import InputError
from cardiolens.inference.plan.frame_views import BLANK
from cardiolens.show.page.case_viewer.item_sources import CaseKey, Sources, read_stages
from cardiolens.show.page.case_viewer.pictures import study_folder
from cardiolens.storage import schemas
from cardiolens.study.anatomy import Anatomy
from cardiolens.study.manifest import read_study
from cardiolens.study.shards import read_volumes
from cardiolens.study.slice_planes import PlacedVolume, placed_volumes, reference_line, same_level

ALL_SHOWN, PARTLY, NOT_SHOWN, NOT_KNOWN = "s", "p", "n", "?"
_REQUEST = ("arm_id", "qa_id", "study_id", "frames_study_id", "frames", "flags", "status", "request_key")
_MOVING = 2  # phases of a slice on which motion can be seen

Place = tuple[str, int]  # volume_id, idx
EvidenceSlices = Sequence[Mapping[str, Any]]  # rows of `evidence`: volume_id, slice, phases
BLOCK = 64  # phases in one picture, so that none is larger than a browser draws
_NO_FOLDER = "the study's folder is not where the run had it"


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


def columns_of(n_phases: int) -> int:
    """Columns of the picture that holds the phases of a slice, row by row."""
    return math.ceil(math.sqrt(min(n_phases, BLOCK)))


def study_layout(volumes: pa.Table, studies: Path, study: str, anatomy: Anatomy) -> dict[str, Any]:
    """Return the volumes of a study, reference lines of slices on each other, and slices at one level.

    `volumes` are the rows of the cohort, read under `anatomy`. Lines are rounded to a tenth of a pixel.
    InputError if none is of the study.
    """
    rows = volumes.filter(pc.equal(volumes["study_id"], study)).to_pylist()
    if not rows:
        raise InputError(f"{study}: the store has no volume of it any more; run the sweep again")
    volumes_placed, reasons = _located(studies, study, rows, anatomy)
    pairs = [(name, cutting) for name in volumes_placed for cutting in volumes_placed if name != cutting]
    return {
        "volumes": [_volume(row, anatomy) for row in rows],
        "lines": _nested({pair: _lines(*(volumes_placed[name] for name in pair)) for pair in pairs}),
        "levels": _nested({pair: same_level(*(volumes_placed[name] for name in pair)) for pair in pairs}),
        "unplaced": reasons,
    }


def _located(
    studies: Path, study: str, rows: Sequence[Mapping[str, Any]], anatomy: Anatomy
) -> tuple[dict[str, PlacedVolume], dict[str, str]]:
    try:
        return placed_volumes(read_study(study_folder(studies, study), anatomy=anatomy), rows)
    except (InputError, OSError, KeyError):
        return {}, {row["volume_id"]: _NO_FOLDER for row in rows}


def _volume(row: Mapping[str, Any], anatomy: Anatomy) -> dict[str, Any]:
    kind, view = anatomy.sequences.get(row["sequence"]), anatomy.views.get(row["view"])
    is_stack = view is not None and view.slices is not None
    names = ("sequence", "view", "n_slices", "n_phases", "height", "width", "ed_phase", "es_phase")
    return {
        "id": row["volume_id"],
        **{name: row[name] for name in names},
        "over_time": kind.over_time if kind else "nothing",
        "ordered": is_stack and row["spatial_order"] != "unknown",
        "block": BLOCK,
        "columns": columns_of(row["n_phases"]),
    }


def _lines(volume: PlacedVolume, crossing: PlacedVolume) -> list[list[list[float] | None]] | None:
    """Return, for each slice of a volume, the reference line of each slice of the other; None if parallel."""
    lines = [[reference_line(plane, cutting) for cutting in crossing.planes] for plane in volume.planes]
    if not any(line for row in lines for line in row):
        return None
    return [[None if line is None else [round(at, 1) for at in line] for line in row] for row in lines]


def _nested(of_pairs: Mapping[tuple[str, str], object]) -> dict[str, dict[str, object]]:
    nested: dict[str, dict[str, object]] = {}
    for (name, partner), value in of_pairs.items():
        if value is not None:
            nested.setdefault(name, {})[partner] = value
    return nested


def lanes(sources: Sources, question: int, arm: int) -> list[dict[str, Any]]:
    """Return what each selector sent at each budget, under the model, prompt and control of an arm."""
    factors = sources.header.arms[arm]
    keys = [
        (question, at)
        for at, arm_there in enumerate(sources.header.arms)
        if (arm_there.model, arm_there.prompt, arm_there.control, arm_there.wording)
        == (factors.model, factors.prompt, factors.control, factors.wording)
    ]
    sent = frames_sent(sources, keys)
    study = sources.studies[sources.study[question]]
    return [_lane(sources, key, sent[key], study) for key in sorted(keys) if key in sent]


def _lane(sources: Sources, key: CaseKey, sent: Sent, study: str) -> dict[str, Any]:
    arm = sources.header.arms[key[1]]
    frames = sent.seen_of(study)
    is_hidden = bool(sent.frames) and not frames and sent.status == schemas.PLANNED
    why = "every frame was shown black" if BLANK in sent.flags else "frames of another patient"
    return {
        "arm": key[1],
        "selector": arm.selector,
        "budget": arm.budget,
        "frames": [list(place) for place in frames],
        "flags": list(sent.flags),
        "why": why if is_hidden else "",
        "status": sent.status,
    }
