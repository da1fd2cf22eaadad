"""Public sets as others keep and repackage them: what the import makes of each.

    python -m bench.repackaged_sets [open|closed|all|TRAIT ...] [hearts=PH-NORMAL,PH-ICM-LAD]

Each trait of `bench/set_traits.py` is given to two hearts in the layout of one set. A volume is right if the
shown frames are those of the phantom, with its lengths, order, ED, ES and masks. The halves follow from the
hashes of the names.
"""

import hashlib
import json
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
from numpy.typing import NDArray

from bench.set_traits import TRAITS
from cardiolens.base.errors import InputError
from cardiolens.config.curation_specs import IngestSpec
from cardiolens.config.dataset import PhantomSpec
from cardiolens.curation.ingest.import_run import ingest
from tests.support.sets.set_export import subject_of
from tests.support.sets.set_volume import SetVolume
from tests.support.sets.set_writers import ACDC, EMIDEC, MNMS, MYOPS, SETS, Subject

_HEARTS = "PH-NORMAL,PH-ICM-LAD"
_CAVITY = {
    **{"acdc": ACDC["lv_blood"], "mnms": MNMS["lv_blood"], "mnms2": MNMS["lv_blood"]},
    **{"emidec": EMIDEC["lv_blood"]},
    **dict.fromkeys(("myops", "cinemyops", "mscmr"), MYOPS["lv_blood"]),
}
_SAME = 2e-3  # difference of two frames / range of each
_SAYS_LESS = {"incomplete"}  # flags of a volume that lacks phases


@dataclass
class Verdict:
    """What the import made of one trait."""

    right: list[str] = field(default_factory=list)
    waits: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)  # of what is in no volume
    layout: str = ""
    refused: str = ""

    def row(self, trait: str) -> str:
        reasons = ", ".join(f"{reason} {count}" for reason, count in self.reasons.most_common(3))
        details = "; ".join([*self.wrong, *self.waits, self.refused])
        counts = f"{len(self.right)} | {len(self.waits)} | {len(self.wrong)}"
        return f"| {trait} | {counts} | {reasons} | {details} |"


def halves() -> tuple[list[str], list[str]]:
    """Return the open and the closed half of all traits."""
    names = sorted(TRAITS, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    return names[: len(names) // 2], names[len(names) // 2 :]


def verdict(form: str, subjects: Sequence[Subject], export: Path, out: Path) -> Verdict:
    """Import a set and compare what came in with the hearts."""
    told = Verdict()
    try:
        ingest(IngestSpec(source=export, out=out))
    except InputError as error:
        told.refused = str(error)
        return told
    for path in sorted(out.glob("proposals/*/proposals.json")):
        for proposal in json.loads(path.read_text())["proposals"]:
            name = proposal["volume_id"]
            if proposal["status"] == "waits":
                told.waits.append(f"{name} ({proposal['reason']})")
            elif proposal["status"] == "taken":
                study = out / "studies" / path.parent.name
                fault = _fault(form, study, proposal, subjects)
                (told.wrong if fault else told.right).append(f"{name}: {fault}" if fault else name)
    rejects = out / "rejects.jsonl"
    for line in rejects.read_text().splitlines() if rejects.is_file() else ():
        told.reasons[json.loads(line)["reason"]] += 1
    return told


def _fault(form: str, study: Path, proposal: Mapping[str, Any], subjects: Sequence[Subject]) -> str:
    """Return what of a volume that was taken is wrong and not said, by the heart it is most like."""
    faults = [
        _fault_by(form, study, proposal, subject.volumes[proposal["volume_id"]])
        for subject in subjects
        if proposal["volume_id"] in subject.volumes
    ]
    return min(
        faults, key=lambda fault: (fault != "", fault.startswith("frames"), fault), default="is of no heart"
    )


def _fault_by(form: str, study: Path, proposal: Mapping[str, Any], volume: SetVolume) -> str:
    entry, flags = proposal["entry"], set(proposal["flags"])
    seen, truth = _shown(study / entry["path"], entry), _frames(volume.voxels)
    phases = _phases(seen, truth)
    if phases is None and entry["spatial_order"] == "unknown":
        truth = truth[::-1]
        phases = _phases(seen, truth)
    if phases is None:
        return f"frames of {seen.shape} are others than those of {truth.shape}"
    if len(phases) not in (truth.shape[1], 1, 2) and not flags & _SAYS_LESS:
        return f"{len(phases)} phases of {truth.shape[1]}, without a flag"
    if not np.allclose(entry["spacing_mm"], volume.spacing_mm, rtol=0.01):
        return f"lengths are {entry['spacing_mm']}, not {volume.spacing_mm}"
    for mark, expected in (("ed", 0), ("es", volume.es)):
        phase = entry.get(f"{mark}_phase")
        if phase is not None and abs(phases[phase] - expected) > (1 if mark == "es" else 0):
            return f"{mark} is {phases[phase]}, not {expected}"
    return _wrong_mask(form, study, entry, volume, phases) if "mask" in entry else ""


def _wrong_mask(
    form: str, study: Path, entry: Mapping[str, Any], volume: SetVolume, phases: Sequence[int]
) -> str:
    """Return whether the cavity is another than the phantom's, in a phase that has any mask."""
    seen = _shown(study / entry["mask"]["path"], entry)
    names = {"lv_blood": _CAVITY[form]}
    truth = _frames(volume.labels(names, "myocardium")) == _CAVITY[form]
    if entry["spatial_order"] == "unknown" and not np.array_equal(seen[:, 0] == _CAVITY[form], truth[:, 0]):
        truth = truth[::-1]
    for rank, phase in enumerate(phases):
        if seen[:, rank].any() and not np.array_equal(seen[:, rank] == _CAVITY[form], truth[:, phase]):
            return f"mask of phase {phase} is another"
    return ""


def _frames(voxels: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(voxels.transpose(2, 3, 1, 0))


def _shown(path: Path, entry: Mapping[str, Any]) -> NDArray[Any]:
    """Return the frames (slice, phase, row, column) as they are displayed."""
    voxels = np.asarray(nib.load(path).dataobj)
    voxels = voxels[..., None] if voxels.ndim == 3 else voxels
    frames, turn = voxels.transpose(2, 3, 0, 1), entry["display_transform"]
    frames = frames.swapaxes(2, 3) if turn["transpose"] else frames
    frames = frames[:, :, ::-1] if turn["flip_rows"] else frames
    return np.asarray(frames[..., ::-1] if turn["flip_cols"] else frames)


def _phases(seen: NDArray[Any], truth: NDArray[Any]) -> list[int] | None:
    """Return the true phase of each phase; None if some frame is none of them."""
    if (seen.shape[0], *seen.shape[2:]) != (truth.shape[0], *truth.shape[2:]):
        return None
    ours, theirs = _ranged(seen), _ranged(truth)
    found = []
    for phase in range(seen.shape[1]):
        away = [float(np.abs(ours[:, phase] - theirs[:, each]).max()) for each in range(truth.shape[1])]
        if min(away) > _SAME:
            return None
        found.append(int(np.argmin(away)))
    return found if found == sorted(set(found)) else None


def _ranged(frames: NDArray[Any]) -> NDArray[np.float64]:
    """Return frames from 0 to 1, each by itself."""
    values = frames.astype(np.float64)
    low, high = values.min(axis=(2, 3), keepdims=True), values.max(axis=(2, 3), keepdims=True)
    return np.asarray((values - low) / np.maximum(high - low, 1e-9))


@cache
def hearts_of(form: str, names: tuple[str, ...]) -> list[Subject]:
    """Render hearts with the views of a set."""
    return [subject_of(name, PhantomSpec(), SETS[form], number) for number, name in enumerate(names, 1)]


def main() -> None:
    options = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
    words = [word for word in sys.argv[1:] if "=" not in word] or ["open"]
    first, second = halves()
    chosen = {"open": first, "closed": second, "all": [*first, *second]}.get(words[0], words)
    hearts = tuple(options.get("hearts", _HEARTS).split(","))
    print("| trait | right | wait | silently wrong | left out | |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        for name in chosen:
            trait = TRAITS[name]
            home, subjects = Path(scratch) / name.replace(" ", "_"), hearts_of(trait.form, hearts)
            SETS[trait.form].write(home / "export", subjects)
            trait.change(home / "export")
            print(verdict(trait.form, subjects, home / "export", home / "out").row(name), flush=True)
            shutil.rmtree(home)


if __name__ == "__main__":
    main()
