"""The whole study for the case viewer: its volumes, how their slices lie, and what was sent of it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow.compute as pc

from cardiolens.base.errors import InputError
from cardiolens.inference.plan.frame_views import BLANK
from cardiolens.show.page.case_viewer.item_sources import CaseKey, CaseRow, Sources
from cardiolens.show.page.case_viewer.pictures import BLOCK, Place, StudyPictures, columns_of
from cardiolens.storage import schemas
from cardiolens.study.anatomy import Anatomy
from cardiolens.study.slice_planes import PlacedVolume, placed_volumes, reference_line, same_level

ALL_SHOWN, PARTLY, NOT_SHOWN, NOT_KNOWN = "s", "p", "n", "?"
_MOVING = 2  # phases of a slice on which motion can be seen
_LANES = ("model", "prompt", "control", "wording")  # what the lanes of a question share
_NO_FOLDER = "the study's folder is not where the run had it"


def frames_sent(row: CaseRow, stages: Iterable[CaseRow]) -> list[Place]:
    """The frames of a request, or of stages of its chain; one without frames shows those of the request."""
    lists = [row["frames"] if stage["frames"] is None else stage["frames"] for stage in stages]
    return [
        (frame["volume_id"], frame["idx"]) for listed in lists or [row["frames"]] for frame in listed or ()
    ]


def frames_seen(row: CaseRow, study: str) -> tuple[Place, ...]:
    """The frames by which a study was seen, without repeats.

    None of a request that was not sent, or that shows black or another patient under a control.
    """
    is_seen = row["frames_study_id"] == study and row["status"] == schemas.PLANNED
    return (
        tuple(dict.fromkeys(frames_sent(row, row["stages"]))) if is_seen and BLANK not in row["flags"] else ()
    )


def requests_of(sources: Sources, keys: Iterable[CaseKey]) -> dict[CaseKey, CaseRow]:
    """The request of each case that was asked."""
    by_name = {(sources.arms[arm], sources.qa_id(question)): (question, arm) for question, arm in keys}
    requests: dict[CaseKey, CaseRow] = {}
    for row in sources.requests(by_name.values()):
        requests.setdefault(by_name[row["arm_id"], row["qa_id"]], row)
    return requests


def shown_under(sources: Sources, arm: int) -> str:
    """A letter per question under an arm; `NOT_KNOWN` for one without evidence slices."""
    questions = range(sources.questions.num_rows)
    evident = [(question, arm) for question in questions if _evidence_slices(sources, question)]
    letters = [NOT_KNOWN for _ in questions]
    for (question, _), row in requests_of(sources, evident).items():
        letters[question] = shown_letter(sources, question, row)
    return "".join(letters)


def shown_letter(sources: Sources, question: int, row: CaseRow) -> str:
    """Whether a request sent all, some or none of the evidence slices of its question, as a letter.

    A slice was sent if one of its frames was, at a phase that shows the answer; for a question on motion, if
    two phases were.
    """
    slices = _evidence_slices(sources, question)
    if not slices:
        return NOT_KNOWN
    study = sources.studies[sources.study[question]]
    subtask = sources.header.subtasks.get(sources.questions["subtask"][question].as_py())
    n_needed = _MOVING if subtask is not None and subtask.temporal else 1
    frames = frames_seen(row, study)
    count = 0
    for evidence in slices:
        n_phases = sources.n_phases.get((study, evidence["volume_id"]))
        if n_phases is not None:  # else the study was prepared again without the volume
            count += _is_sent(evidence, frames, n_phases, n_needed)
    return ALL_SHOWN if count == len(slices) else PARTLY if count else NOT_SHOWN


def _evidence_slices(sources: Sources, question: int) -> Sequence[Mapping[str, Any]]:
    """The evidence slices of a question: volume_id, slice, phases; none where they are not known."""
    return (sources.evidence.get(sources.qa_id(question)) or {}).get("slices") or ()


def _is_sent(evidence: Mapping[str, Any], frames: Sequence[Place], n_phases: int, n_needed: int) -> bool:
    phases = {
        idx % n_phases
        for volume_id, idx in frames
        if volume_id == evidence["volume_id"] and idx // n_phases == evidence["slice"]
    }
    telling = set(evidence["phases"] or range(n_phases))
    return len(phases & telling) >= min(n_needed, len(telling))


def study_layout(pictures: StudyPictures, study: str) -> dict[str, Any]:
    """The volumes of a study, reference lines of slices on each other, and slices at one level.

    Lines are rounded to a tenth of a pixel. InputError if the store has no volume of the study.
    """
    rows = pictures.volumes.filter(pc.equal(pictures.volumes["study_id"], study)).to_pylist()
    if not rows:
        raise InputError(f"{study}: the store has no volume of it any more; run the sweep again")
    try:
        volumes, reasons = placed_volumes(pictures.read(study), rows)
    except (InputError, OSError, KeyError):
        volumes, reasons = {}, {row["volume_id"]: _NO_FOLDER for row in rows}
    pairs = [(name, cutting) for name in volumes for cutting in volumes if name != cutting]
    return {
        "volumes": [_volume(row, pictures.anatomy) for row in rows],
        "lines": _nested({pair: _lines(*(volumes[name] for name in pair)) for pair in pairs}),
        "levels": _nested({pair: same_level(*(volumes[name] for name in pair)) for pair in pairs}),
        "unplaced": reasons,
    }


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
    arms = sources.header.arms
    alike = [
        (question, at)
        for at, other in enumerate(arms)
        if all(getattr(other, name) == getattr(arms[arm], name) for name in _LANES)
    ]
    study = sources.studies[sources.study[question]]
    return [_lane(sources, at, row, study) for (_, at), row in sorted(requests_of(sources, alike).items())]


def _lane(sources: Sources, at: int, row: CaseRow, study: str) -> dict[str, Any]:
    arm, frames = sources.header.arms[at], frames_seen(row, study)
    is_hidden = frames_sent(row, row["stages"]) and not frames and row["status"] == schemas.PLANNED
    why = "every frame was shown black" if BLANK in row["flags"] else "frames of another patient"
    return {
        "arm": at,
        "selector": arm.selector,
        "budget": arm.budget,
        "frames": [list(place) for place in frames],
        "flags": row["flags"],
        "why": why if is_hidden else "",
        "status": row["status"],
    }
