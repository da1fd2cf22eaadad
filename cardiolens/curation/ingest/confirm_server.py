"""Routes of the page of decisions; every decision is on disk before it is answered.

It reads what the import wrote, and writes to the file of decisions alone.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from http import HTTPStatus
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_json
from cardiolens.config.base import Spec
from cardiolens.curation.ingest.decisions import REFUSED, Choice, Ledger, contradicted
from cardiolens.curation.ingest.reasons import Flag
from cardiolens.curation.ingest.write import PROPOSALS_NAME
from cardiolens.show.local_server import (
    LocalServer,
    Reply,
    Request,
    Site,
    json_reply,
    number_of,
    png_reply,
    read_body,
    refusal,
    text_reply,
)
from cardiolens.show.page.case_viewer.pictures import encoded, tiled
from cardiolens.show.page.page_rendering import asset, templates
from cardiolens.study import nifti
from cardiolens.study.anatomy import sequences

_LARGEST = 160  # pixels of a frame of a sheet
_PCT = (1.0, 99.0)


@dataclass(frozen=True, slots=True)
class ImportedStudy:
    """One study as `out` holds it."""

    folder: Path  # of its proposals
    by_stack: Mapping[str, dict[str, Any]]  # proposals by the ids of their stacks

    @property
    def study_id(self) -> str:
        return self.folder.name

    @property
    def proposals(self) -> list[dict[str, Any]]:
        return [*self.by_stack.values()]

    def sheet(self, number: int) -> bytes | None:
        """Return the picture of a proposal's volume; None if it has none, or was imported again since."""
        proposals = self.proposals
        entry = proposals[number]["entry"] if 0 <= number < len(proposals) else None
        if entry is None:
            return None
        study = self.folder.parents[1] / "studies" / self.study_id
        folder = study if proposals[number]["status"] == "taken" else self.folder
        return _sheet_of(folder / Path(str(entry["path"])).name, str(entry["sha256"]))


def read_imported(out: Path) -> list[ImportedStudy]:
    """Studies below `out` in the order of their ids; InputError where none was imported."""
    paths = sorted(out.glob(f"proposals/*/{PROPOSALS_NAME}"))
    if not paths:
        raise InputError(f"out={out}: holds no proposals; give the out of a python -m cardiolens.ingest")
    return [_study(path) for path in paths]


def _study(path: Path) -> ImportedStudy:
    try:
        proposals = read_json(path)["proposals"]
        return ImportedStudy(path.parent, {str(each["stack"]): dict(each) for each in proposals})
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(
            f"{path}: is no list of proposals of this version; run the import again, it changes nothing else"
        ) from None


@lru_cache(maxsize=256)
def _sheet_of(path: Path, sha256: str) -> bytes | None:
    """All frames of a volume as one PNG, slices down and phases across.

    Frames stand as DICOM has them, rows down; the page turns them. None where the volume cannot be read.
    """
    try:
        stored = nifti.read_file(path)
        if nifti.sha256(stored) != sha256:
            return None
        header = nifti.parse_header(stored)
        flat = nifti.voxels(stored, header).astype(np.float32)
        voxels = flat.reshape(header.shape, order="F") * header.slope + header.inter
    except InputError:
        return None
    frames = (voxels[..., None] if voxels.ndim == 3 else voxels).transpose(2, 3, 1, 0)
    step = max(-(-max(frames.shape[2:]) // _LARGEST), 1)
    frames = frames[:, :, ::step, ::step]
    low, high = np.percentile(frames, _PCT)
    grey = np.clip((frames - low) / max(float(high - low), 1e-6) * 255, 0, 255).astype(np.uint8)
    return encoded(tiled(list(grey.reshape(-1, *grey.shape[2:])), grey.shape[1]), fast=True)


class Change(Spec):
    """What the page asks for: choices about stacks of a study as it last saw it, or an undo."""

    study_id: str
    revision: int
    stacks: dict[str, Choice | None] = Field(default_factory=dict)
    undo: bool = False
    everywhere: bool = False  # the same for the stacks of that volume in all other studies that are open


@dataclass
class Desk:
    """Imported studies and the ledger of what is decided about them."""

    studies: Sequence[ImportedStudy]
    ledger: Ledger
    lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self, request: Request) -> Reply | None:
        """What stands at an address; None where nothing does."""
        match request.parts:
            case [""] | ["index.html"]:
                return text_reply("html", templates().get_template("confirm.html").render())
            case ["confirm.js" | "confirm.css" as name]:
                return text_reply("js" if name.endswith(".js") else "css", asset(name))
            case ["studies.json"]:
                with self.lock:
                    studies = [self._entry(study) for study in self.studies]
                return json_reply({"studies": studies, "legal": _legal()})
            case ["sheets", study, name]:
                at, number = number_of(study), number_of(name.removesuffix(".png"))
                is_there = 0 <= at < len(self.studies)
                return png_reply(self.studies[at].sheet(number) if is_there else None)
            case _:
                return None

    def _entry(self, study: ImportedStudy) -> dict[str, Any]:
        state = self._state(study.study_id)
        return {"study_id": study.study_id, "proposals": study.proposals, **state}

    def _state(self, study_id: str) -> dict[str, Any]:
        choices = self.ledger.decisions.of(study_id)
        return {
            "revision": self.ledger.decisions.lines[study_id],
            "choices": {stack: choice.model_dump() for stack, choice in choices.items()},
        }

    def decide(self, request: Request) -> Reply | None:
        """Append what a request asks for and return the study's state; a refusal says why, and the state.

        A refusal that a person may meet is no error of HTTP, which browsers would complain of.
        """
        if list(request.parts) != ["decide"]:
            return None
        change = read_body(request, Change)
        if isinstance(change, Reply):
            return change
        study = next((each for each in self.studies if each.study_id == change.study_id), None)
        if study is None:
            return refusal(HTTPStatus.BAD_REQUEST, "no such study; load the page again")
        with self.lock:
            others: dict[str, dict[str, Choice | None]] = {}
            refused = self._refused(study, change)
            try:
                if refused is None and change.undo:
                    self.ledger.undo(study.study_id)
                elif refused is None:
                    self.ledger.decide(study.study_id, change.stacks)
                    others = self._elsewhere(study, change) if change.everywhere else {}
                    for name, stacks in others.items():
                        self.ledger.decide(name, stacks)
            except InputError as error:
                refused = str(error)
            except OSError as error:
                refused = f"not kept, the file of decisions cannot be written ({error.strerror or error})"
            state = self._state(study.study_id)
            if refused is not None:
                return refusal(HTTPStatus.OK, refused, state)
            return json_reply(state | {"others": {name: self._state(name) for name in others}})

    def _elsewhere(self, study: ImportedStudy, change: Change) -> dict[str, dict[str, Choice | None]]:
        """Return the same decisions for the stacks of the same volume in other studies, where none is made.

        Phases and millimetres belong to one study and are not carried over. Display, direction, what the
        first slice is and the place of the voxel size are.
        """
        carried: dict[str, dict[str, Choice | None]] = {}
        confirmed = [
            (study.by_stack[stack], choice)
            for stack, choice in change.stacks.items()
            if choice is not None and choice.status == "confirmed"
        ]
        for own, choice in confirmed:
            for neighbour in self.studies:
                decided = self.ledger.decisions.of(neighbour.study_id)
                if neighbour is study or choice.volume_id in {each.volume_id for each in decided.values()}:
                    continue
                for stack, proposal in neighbour.by_stack.items():
                    choice_there = carried_over(choice, own, proposal)
                    if stack not in decided and choice_there is not None:
                        carried.setdefault(neighbour.study_id, {})[stack] = choice_there
                        break
        return carried

    def _refused(self, study: ImportedStudy, change: Change) -> str | None:
        if change.revision != self.ledger.decisions.lines[study.study_id]:
            return "decided on elsewhere since; this is how it stands now, press the key again"
        if change.undo:
            return None
        stacks = study.by_stack
        if not change.stacks or not change.stacks.keys() <= stacks.keys():
            return "no such stack; load the page again"
        for stack, choice in change.stacks.items():
            if choice is not None and (why := _why_refused(choice, stacks[stack])):
                return REFUSED[why]
        merged = self.ledger.decisions.of(study.study_id) | change.stacks
        twice = contradicted([choice for choice in merged.values() if choice is not None])
        if twice:
            return f"another stack is confirmed as {', '.join(sorted(twice))}; C takes this one instead of it"
        return None


def carried_over(choice: Choice, own: Mapping[str, Any], proposal: Mapping[str, Any]) -> Choice | None:
    """Return a decision on one study's stack (`own`) for another's; None if it does not fit.

    A set may store stacks from the base and from the apex. A decision that leaves the slices as they were
    found leaves them so elsewhere; one that turns them over is for stacks of unknown order.
    """
    reverses = choice.along_normal != own["along_normal"]
    is_ordered = (proposal["entry"] or {}).get("spatial_order") == "base_to_apex"
    if reverses and is_ordered:
        return None
    is_same_volume = proposal["volume_id"] == choice.volume_id and proposal["status"] != "left_out"
    spacing = choice.spacing if isinstance(choice.spacing, str) else None
    order = {
        "along_normal": proposal["along_normal"] != reverses,
        "base_first": None if is_ordered else choice.base_first,
    }
    carried = choice.model_copy(update={"spacing": spacing, **order, **dict.fromkeys(choice.marks)})
    return carried if is_same_volume and _why_refused(carried, proposal) is None else None


def _why_refused(choice: Choice, proposal: Mapping[str, Any]) -> str | None:
    """Return why a choice does not fit a proposal; it may leave no size of voxels open."""
    is_size_open = Flag.SPACING in proposal["flags"]
    declared, phases = str(proposal.get("declared") or ""), int(proposal["phases"])
    return choice.refused(phases, declared, proposal["places_mm"], is_size_open=is_size_open)


def _legal() -> dict[str, dict[str, Any]]:
    return {
        name: {"over_time": known.over_time, "prefix": known.prefix, "views": known.views}
        for name, known in sequences().items()
    }


def desk_server(desk: Desk, port: int = 0) -> LocalServer:
    """Make a server that is not yet running; port 0 takes a free port."""
    return LocalServer(Site(desk.read, desk.decide), port)
