"""The whole study for the case viewer: its volumes, how their slices lie, and what was sent of it."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base.errors import InputError
from cardiolens.inference.plan.frame_views import BLANK
from cardiolens.show.page.case_viewer.item_sources import CaseKey, Sources
from cardiolens.show.page.case_viewer.pictures import study_folder
from cardiolens.show.page.case_viewer.sent_frames import Sent, frames_sent
from cardiolens.storage import schemas
from cardiolens.study.anatomy import Anatomy
from cardiolens.study.manifest import read_study
from cardiolens.study.slice_planes import PlacedVolume, placed_volumes, reference_line, same_level

BLOCK = 64  # phases in one picture, so that none is larger than a browser draws
_NO_FOLDER = "the study's folder is not where the run had it"


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
