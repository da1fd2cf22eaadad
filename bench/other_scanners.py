"""Exams as other makers, sites, archives and anonymisers leave them: what the import makes of each.

    python -m bench.other_scanners [open|closed|all|HABIT ...] [folder=DIR] [seed=4711]

Each habit of the DICOM phantom (`tests/support/dicom/data/habits.yaml`) is given to one exam, which is
imported. A volume is right if it has all frames in their places, its lengths, display, order, ED and ES
(within a phase). A volume that lacks slices is right if a flag says so. The halves follow from the hashes of
the names.
"""

import hashlib
import json
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import pydicom
from numpy.typing import NDArray

from cardiolens.base.errors import InputError
from cardiolens.config.curation_specs import IngestSpec
from cardiolens.config.dataset import PhantomSpec
from cardiolens.curation.ingest.import_run import ingest
from tests.support.dicom.dicom_export import make_export
from tests.support.dicom.exam import ExportSpec
from tests.support.dicom.habits import habits

_SAYS_LESS = {"incomplete"}  # flags of a volume that lacks slices or phases
_SAYS_AGAIN = "repeats_left_out"
_LEVELS, _BETWEEN = 15, 0.3765  # coarse and off the integers, so that no rounding of a slope moves a pixel
Frame = tuple[str, int, int]  # acquisition, slice from the base, phase


@dataclass
class Answer:
    """What the import made of one exam."""

    right: list[str] = field(default_factory=list)
    waits: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)  # of frames that are in no volume
    refused: str = ""  # the error of the import, if nothing came in

    def row(self, habit: str) -> str:
        reasons = ", ".join(f"{reason} {count}" for reason, count in self.reasons.most_common(3))
        lists = [f"{len(names)}" for names in (self.right, self.waits, self.missing, self.wrong)]
        details = "; ".join([*self.wrong, *(f"waits: {name}" for name in self.waits), self.refused])
        return f"| {habit} | {' | '.join(lists)} | {reasons} | {details} |"


def halves() -> tuple[list[str], list[str]]:
    """Return the open and the closed half of all habits."""
    names = sorted(habits(), key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    return names[: len(names) // 2], names[len(names) // 2 :]


@dataclass(frozen=True)
class Exam:
    """An exam as the scanner wrote it: its truth, which frame has which pixels, lengths of each volume."""

    truth: Mapping[str, Any]
    frames: Mapping[str, Frame]
    lengths: Mapping[str, tuple[float, float]]  # of pixels and between slices, mm


def make(folder: Path, vendor: str, seed: int, habit: str = "") -> Path:
    """Make an export of one exam, unless the folder has it."""
    if not folder.exists():
        spec = ExportSpec.model_validate({"vendor": vendor, "habit": habit})
        make_export(PhantomSpec(n_sampled=1, seed=seed), spec, folder)
    return folder


@cache
def exam_as_written(folder: Path) -> Exam:
    """Read the export of a vendor without habits."""
    [line] = (folder / "truth.jsonl").read_text(encoding="utf-8").splitlines()
    truth, frames, lengths = json.loads(line), dict[str, Frame](), dict[str, tuple[float, float]]()
    places: dict[str, dict[int, NDArray[np.float64]]] = defaultdict(dict)
    for series in truth["series"]:
        read: dict[str, pydicom.Dataset] = {}
        for name, slice_number, phase, _, frame, file in series["images"]:
            if file not in read:
                read = {file: pydicom.dcmread(folder / "export" / file)}
            dataset = read[file]
            stored = dataset.pixel_array
            pixels = stored if stored.ndim == 2 else stored[frame - 1]
            if truth["volumes"][name]["left_out"] is None:
                frames[_looks(pixels)] = (_acquisition(name), slice_number, phase)
                places[_acquisition(name)][slice_number] = _position(dataset, frame)
                lengths[_acquisition(name)] = (_spacing(dataset), 0.0)
    for name, at in places.items():
        if len(at) > 1:
            first, second = (at[k] for k in sorted(at)[:2])
            lengths[name] = (lengths[name][0], float(np.linalg.norm(second - first)))
    return Exam(truth, frames, lengths)


def _position(dataset: pydicom.Dataset, frame: int | None) -> NDArray[np.float64]:
    group = dataset if frame is None else dataset.PerFrameFunctionalGroupsSequence[frame - 1]
    at = group if frame is None else group.PlanePositionSequence[0]
    return np.array([float(value) for value in at.ImagePositionPatient])


def _spacing(dataset: pydicom.Dataset) -> float:
    shared = dataset.get("SharedFunctionalGroupsSequence")
    return float((shared[0].PixelMeasuresSequence[0] if shared else dataset).PixelSpacing[0])


def _acquisition(name: str) -> str:
    """Both images of an inversion recovery are right."""
    return name.removesuffix("_psir")


def _looks(pixels: NDArray[Any]) -> str:
    """Return a digest of a frame (row, column) that a change of its scale keeps."""
    values = pixels.astype(np.float64)
    shares = (values - values.min()) / max(np.ptp(values), 1e-9)
    levels = np.floor(shares * _LEVELS + _BETWEEN).astype(np.int32)
    return hashlib.sha256(levels.tobytes()).hexdigest()


def answer(export: Path, out: Path, exam: Exam) -> Answer:
    """Import an export and compare what came in with the exam as it was written."""
    told = Answer()
    try:
        ingest(IngestSpec(source=export / "export", out=out))
    except InputError as error:
        told.refused = str(error).rpartition("usable MR image in DICOM or NIfTI ")[2]
    for path in sorted(out.glob("proposals/*/proposals.json")):
        tree = json.loads(path.read_text())
        study = out / "studies" / path.parent.name
        for proposal in tree["proposals"]:
            if proposal["status"] == "taken":
                fault = _fault(study, proposal, exam)
                (told.right if not fault else told.wrong).append(
                    proposal["volume_id"] + (f": {fault}" if fault else "")
                )
            elif proposal["status"] == "waits":
                told.waits.append(f"{proposal['volume_id']} ({proposal['reason']})")
    for line in _lines(out / "rejects.jsonl"):
        told.reasons[line["reason"]] += 1
    wanted = {
        f"{volume['sequence']}_{volume['view']}".replace("perfusion", "perf")
        for name, volume in exam.truth["volumes"].items()
        if volume["left_out"] is None
    }
    here = {entry.partition(":")[0].partition(" ")[0] for entry in (*told.right, *told.wrong, *told.waits)}
    told.missing = sorted(wanted - here)
    return told


def _lines(path: Path) -> Iterator[Mapping[str, Any]]:
    if path.is_file():
        yield from (json.loads(line) for line in path.read_text().splitlines())


def _fault(study: Path, proposal: Mapping[str, Any], exam: Exam) -> str:
    """Return what of a volume that was taken is wrong and not said; empty if nothing is."""
    entry, flags = proposal["entry"], set(proposal["flags"])
    image = nib.load(study / entry["path"])
    stored = np.asarray(image.dataobj)
    stored = stored[..., None] if stored.ndim == 3 else stored
    grid = [
        [exam.frames.get(_looks(frame.T)) for frame in np.moveaxis(line, 2, 0)]
        for line in np.moveaxis(stored, 2, 0)
    ]
    flat = [frame for line in grid for frame in line]
    if None in flat:
        return f"{flat.count(None)} of {len(flat)} frames are none of a volume"
    names = {frame[0] for frame in flat if frame}
    if len(names) > 1:
        return f"frames of {', '.join(sorted(names))}"
    [name] = names
    truth = exam.truth["volumes"][name]
    if (truth["sequence"], truth["view"]) != (entry["sequence"], entry["view"]):
        return f"is {name}"
    return _wrong_order(grid, truth, flags) or _wrong_facts(entry, truth, exam.lengths[name], flags)


def _wrong_order(grid: Sequence[Sequence[Frame | None]], truth: Mapping[str, Any], flags: set[str]) -> str:
    slices = [line[0][1] for line in grid if line[0]]
    phases = [[frame[2] for frame in line if frame] for line in grid]
    if any(len({frame[1] for frame in line if frame}) > 1 for line in grid):
        return "slices within a row of phases"
    if slices != sorted(set(slices)) and truth["view"] == "sax":
        return f"slices are {slices}"
    if _SAYS_AGAIN in flags and all(line == sorted(line) for line in phases):
        return ""
    if any(line != sorted(set(line)) for line in phases) or any(line != phases[0] for line in phases):
        return f"phases are {phases[0]}"
    whole = len(slices) == truth["n_slices"] and len(phases[0]) == truth["n_phases"]
    return "" if whole or flags & _SAYS_LESS else f"{len(slices)} slices of {len(phases[0])} phases"


def _wrong_facts(
    entry: Mapping[str, Any], truth: Mapping[str, Any], lengths: tuple[float, float], flags: set[str]
) -> str:
    pixel, _, gap = entry["spacing_mm"]
    if not np.isclose(pixel, lengths[0], rtol=0.01):
        return f"pixels of {pixel} mm, not {lengths[0]}"
    if lengths[1] and not np.isclose(gap, lengths[1], rtol=0.01) and not flags & _SAYS_LESS:
        return f"slices {gap:.2f} mm apart, not {lengths[1]:.2f}"
    shown = truth["display"] | {"transpose": not truth["display"]["transpose"]}  # NIfTI holds columns first
    if entry["display_transform"] != shown:
        return f"shown as {entry['display_transform']}"
    for mark in ("ed", "es"):
        phase, expected = entry[f"{mark}_phase"], truth[mark]
        if None in (phase, expected):
            continue
        off = abs(phase - expected)
        if min(off, truth["n_phases"] - off) > 1 and "times_by_default" not in flags:
            return f"{mark} is {phase}, not {expected}"
    return ""


def main() -> None:
    options = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
    words = [word for word in sys.argv[1:] if "=" not in word] or ["open"]
    first, second = halves()
    chosen = {"open": first, "closed": second, "all": [*first, *second]}.get(words[0], words)
    print(
        "| habit | right | wait | left out | silently wrong | frames left out | |\n"
        "|---|---|---|---|---|---|---|"
    )
    with tempfile.TemporaryDirectory() as scratch:
        folder, seed = Path(options.get("folder", scratch)), int(options.get("seed", "4711"))
        for name in chosen:
            vendor = habits()[name].vendor
            exam = exam_as_written(make(folder / f"{vendor}-{seed}", vendor, seed))
            export = make(folder / f"{name}-{seed}", vendor, seed, name)
            print(answer(export, Path(scratch) / f"{name}.out", exam).row(name), flush=True)


if __name__ == "__main__":
    main()
