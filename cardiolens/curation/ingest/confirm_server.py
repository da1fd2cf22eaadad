"""Routes of the page of decisions; every decision is on disk before it is answered.

It reads what the import wrote, and writes to the file of decisions alone.
"""

import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
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
    png_reply,
    read_body,
    refusal,
    text_reply,
)
from cardiolens.show.page.case_viewer.pictures import encoded, tiled
from cardiolens.show.page.page_rendering import asset, templates
from cardiolens.study import nifti
from cardiolens.study.anatomy import sequences
from cardiolens.study.volume_manifest import DisplayTransform

_LARGEST = 160  # pixels of a frame of a sheet
_PCT = (1.0, 99.0)

Stacks = dict[str, dict[str, Any]]  # the proposals of a study by the ids of their stacks


def read_imported(out: Path) -> dict[str, Stacks]:
    """Return the proposals of all studies below `out` by their ids; InputError where none was imported."""
    imported = {}
    for path in sorted(out.glob(f"proposals/*/{PROPOSALS_NAME}")):
        try:
            proposals = read_json(path)["proposals"]
            imported[path.parent.name] = {str(each["stack"]): dict(each) for each in proposals}
        except (OSError, ValueError, KeyError, TypeError):
            raise InputError(
                f"{path}: is no list of proposals of this version; run the import again, it changes nothing "
                "else"
            ) from None
    if not imported:
        raise InputError(f"out={out}: holds no proposals; give the out of a python -m cardiolens.ingest")
    return imported


def sheet(out: Path, study_id: str, proposal: Mapping[str, Any]) -> bytes | None:
    """Return all frames of a proposal's volume as one PNG, slices down and phases across.

    Frames stand as DICOM has them, rows down; the page turns them. None if the volume cannot be read, or was
    imported again since.
    """
    folder, entry = "studies" if proposal["status"] == "taken" else "proposals", proposal["entry"]
    try:
        stored = nifti.read_file(out / folder / study_id / Path(str(entry["path"])).name)
        if nifti.sha256(stored) != entry["sha256"]:
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

    out: Path
    studies: Mapping[str, Stacks]
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
                    studies = [
                        {"study_id": name, "proposals": [*stacks.values()], **self._state(name)}
                        for name, stacks in self.studies.items()
                    ]
                return json_reply({"studies": studies, "legal": _legal()})
            case ["sheets", study_id, name]:
                proposal = self.studies.get(study_id, {}).get(name.removesuffix(".png"))
                return png_reply(None if proposal is None else sheet(self.out, study_id, proposal))
            case _:
                return None

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
        if change.study_id not in self.studies:
            return refusal(HTTPStatus.BAD_REQUEST, "no such study; load the page again")
        with self.lock:
            try:
                others = self._append(change)
            except InputError as error:
                return refusal(HTTPStatus.OK, str(error), self._state(change.study_id))
            except OSError as error:
                why = f"not kept, the file of decisions cannot be written ({error.strerror or error})"
                return refusal(HTTPStatus.OK, why, self._state(change.study_id))
            states = {name: self._state(name) for name in others}
            return json_reply(self._state(change.study_id) | {"others": states})

    def _append(self, change: Change) -> Iterable[str]:
        """Append a change to the ledger; return the ids of the other studies that it is carried to."""
        self._check(change)
        if change.undo:
            self.ledger.undo(change.study_id)
            return ()
        self.ledger.decide(change.study_id, change.stacks)
        others = self._elsewhere(change) if change.everywhere else {}
        for name, stacks in others.items():
            self.ledger.decide(name, stacks)
        return others

    def _check(self, change: Change) -> None:
        """Raise InputError for a change that does not fit how the study stands."""
        if change.revision != self.ledger.decisions.lines[change.study_id]:
            raise InputError("decided on elsewhere since; this is how it stands now, press the key again")
        if change.undo:
            return
        stacks = self.studies[change.study_id]
        if not change.stacks or not change.stacks.keys() <= stacks.keys():
            raise InputError("no such stack; load the page again")
        for stack, choice in change.stacks.items():
            if choice is not None and (why := _why_refused(choice, stacks[stack])):
                raise InputError(REFUSED[why])
        merged = self.ledger.decisions.of(change.study_id) | change.stacks
        if twice := contradicted([choice for choice in merged.values() if choice is not None]):
            raise InputError(
                f"another stack is confirmed as {', '.join(sorted(twice))}; C takes this one instead of it"
            )

    def _elsewhere(self, change: Change) -> dict[str, dict[str, Choice | None]]:
        """Return the same decisions for the stacks of the same volume in other studies, where none is made.

        Phases and millimetres belong to one study and are not carried over. Display, direction, what the
        first slice is and the place of the voxel size are.
        """
        carried: dict[str, dict[str, Choice | None]] = defaultdict(dict)
        for stack, choice in change.stacks.items():
            if choice is None or choice.status != "confirmed":
                continue
            own = self.studies[change.study_id][stack]
            for name, stacks in self.studies.items():
                decided = self.ledger.decisions.of(name)
                is_decided = choice.volume_id in {each.volume_id for each in decided.values()}
                if name == change.study_id or is_decided:
                    continue
                for stack_there, proposal in stacks.items():
                    choice_there = carried_over(choice, own, proposal)
                    if stack_there not in decided and choice_there is not None:
                        carried[name][stack_there] = choice_there
                        break
        return carried


def carried_over(choice: Choice, own: Mapping[str, Any], proposal: Mapping[str, Any]) -> Choice | None:
    """Return a decision on one study's stack (`own`) for another's; None if it does not fit.

    Studies may store a volume in several ways. A decision that leaves slices and display as they were found
    leaves them so elsewhere. One that turns the slices over is for stacks of unknown order, and one that
    turns the display is for stacks that were found to be displayed alike.
    """
    reverses = choice.along_normal != own["along_normal"]
    is_ordered = proposal["entry"]["spatial_order"] == "base_to_apex"
    display, display_there = (each["entry"]["display_transform"] for each in (own, proposal))
    turns = choice.display != DisplayTransform(**display)
    is_same_volume = proposal["volume_id"] == choice.volume_id and proposal["status"] != "left_out"
    if not is_same_volume or (reverses and is_ordered) or (turns and display != display_there):
        return None
    changes = {
        "display": choice.display if turns else DisplayTransform(**display_there),
        "spacing": choice.spacing if isinstance(choice.spacing, str) else None,
        "along_normal": proposal["along_normal"] != reverses,
        "base_first": None if is_ordered else choice.base_first,
        **dict.fromkeys(choice.marks),
    }
    carried = choice.model_copy(update=changes)
    return carried if _why_refused(carried, proposal) is None else None


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
