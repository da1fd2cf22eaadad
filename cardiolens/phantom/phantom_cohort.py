"""Write a cohort of phantom studies in the folder layout of any dataset: studies and a questions file."""

import gzip
import hashlib
import json
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardiolens.base import disk
from cardiolens.base.digest import digest_of_tree
from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_json
from cardiolens.config.dataset import WINDOW_PCT, PhantomSpec
from cardiolens.phantom import codes, signal
from cardiolens.phantom.draws import Draws
from cardiolens.phantom.fixed_reports import reports
from cardiolens.phantom.geometry import Heart
from cardiolens.phantom.measure import lv_volume, smallest_lv_volume
from cardiolens.phantom.planes import Size, Vector, affine, sizes, views
from cardiolens.phantom.render import Rendered, end_systole, render
from cardiolens.phantom.roster import PROTOCOL, SEQUENCES, Study, catalogue, roster, study, without_lesions
from cardiolens.phantom.signal import appearance
from cardiolens.protocol.tasks.catalogue import Catalogue, load_catalogue
from cardiolens.protocol.tasks.instantiate import records
from cardiolens.protocol.tasks.questions import write_questions
from cardiolens.protocol.tasks.truth import findings
from cardiolens.study.anatomy import check_heart
from cardiolens.study.windowing import grey_scale

STUDIES, QUESTIONS = "studies", "questions.jsonl"
_OPTIONS = "options.json"  # what a cohort was made with
LEAST_MM2 = 20.0  # of lesion, by which a slice shows it
_WITH_LESIONS = ("lge", "t2")  # of one frame a slice
_DISPLAY = {"transpose": True, "flip_rows": True, "flip_cols": False}
_LAYER_MM = 8.0
_COMPUTED = (  # header values that are rounded: linear algebra may round differently between machines
    *("pixdim", "srow_x", "srow_y", "srow_z", "quatern_b", "quatern_c", "quatern_d"),
    *("qoffset_x", "qoffset_y", "qoffset_z"),
)
Record = dict[str, Any]
Window = tuple[float, float]  # intensities shown as black and white


def first_phase(seed: str, heart: Heart, phases: int) -> int:
    """Draw the phase of the cycle with which a cine begins.

    Neither end-diastole nor end-systole is its first or last phase: those are neighbours in the cycle, and
    their numbers far apart.
    """
    systole = end_systole(heart, phases)
    legal = [
        first
        for first in range(phases)
        if all(0 < (moment - first) % phases < phases - 1 for moment in (0, systole))
    ]
    return Draws(f"{seed}|first phase", 0).one_of(legal)


def quantity_findings(
    heart: Heart, tasks: Catalogue, phases: int, first: int = 0
) -> dict[str, tuple[str, ...]]:
    """Return the findings that are numbers; `first` is the phase of the cycle with which cines begin."""
    largest, smallest = lv_volume(heart, 0.0), smallest_lv_volume(heart)
    values = {
        "cine.lv_ejection_fraction": 100 * (largest - smallest) / largest,
        "cine.lv_edv": largest,
        "cine.lv_esv": smallest,
        "cine.ed_phase": (-first) % phases + 1,
        "cine.es_phase": (end_systole(heart, phases) - first) % phases + 1,
    }
    return {
        subtask.finding: (subtask.quantity.written(values[subtask.finding]),)
        for subtask in tasks.subtasks.values()
        if subtask.quantity is not None and subtask.finding in values
    }


def write_volume(folder: Path, rendered: Rendered, size: Size) -> Record:
    """Write one volume and its mask, if any, and return its entry in `study.json`."""
    view, name = rendered.view, f"{rendered.view.code}.nii.gz"
    step, gap = _step(rendered)
    matrix = affine(rendered.planes, size.pixels, size.spacing_mm, step)
    entry: Record = {
        "volume_id": view.code,
        "sequence": view.sequence,
        "view": view.view,
        "path": name,
        "shape": [size.pixels, size.pixels, len(rendered.frames)],
        "spacing_mm": [size.spacing_mm, size.spacing_mm, gap],
        "layout": {
            "order": "slice_major" if rendered.phases > 1 else "static",
            "n_slices": len(rendered.planes),
            "n_phases": rendered.phases,
        },
        "spatial_order": "unknown" if view.kind == "long_axis" else "base_to_apex",
        "key_layers": None,
        "ed_phase": 0,
        "es_phase": rendered.es_phase,
        "layout_source": "declared",
        "display_transform": _DISPLAY,
        "sha256": _write_frames(folder / name, rendered.frames, matrix),
    }
    if view.sequence == "perfusion":
        entry["t_on"], entry["t_peak"] = signal.first_pass(rendered.phases)
    if rendered.masks is not None:
        path = f"masks/{name}"
        entry["mask"] = {"path": path, "sha256": _write_frames(folder / path, rendered.masks, matrix)}
    return entry


def _step(rendered: Rendered) -> tuple[Vector, float]:
    """Return the vector from one slice to the next in heart coordinates, and its length in mm."""
    first, *rest = rendered.planes
    if rest:
        between = np.array(rest[0].centre) - np.array(first.centre)
    else:
        between = _LAYER_MM * np.cross(first.down, first.right)
    x, y, z = (round(float(part), 9) for part in between)
    return (x, y, z), round(float(np.sqrt(x * x + y * y + z * z)), 6)


def _write_frames(path: Path, frames: NDArray[np.generic], affine: NDArray[np.float64]) -> str:
    """Write displayed frames (frame, row, column) as a `.nii.gz` file in mm; return its digest.

    Stored axes are column, row from the bottom, and frame.
    """
    import nibabel as nib

    image = nib.Nifti1Image(np.ascontiguousarray(frames[:, ::-1, :].transpose(2, 1, 0)), affine)
    image.header.set_xyzt_units("mm")
    image.set_qform(affine, code="scanner")
    image.set_sform(affine, code="scanner")
    for name in _COMPUTED:
        image.header[name] = np.round(image.header[name], 6) + 0.0  # no negative zero
    content = gzipped(image.to_bytes())
    disk.write_draft(path, content)
    return hashlib.sha256(content).hexdigest()


def gzipped(content: bytes) -> bytes:
    """Gzip without compression, which saves little on noise, and without a time."""
    return gzip.compress(content, compresslevel=0, mtime=0)


def _write_json(path: Path, tree: Any) -> None:
    disk.write_draft(path, (json.dumps(tree, indent=1, ensure_ascii=False) + "\n").encode())


def make_cohort(
    spec: PhantomSpec,
    folder: Path,
    protocol: str = PROTOCOL,
    *,
    questions: str = QUESTIONS,
) -> None:
    """Make `folder/studies/<id>/` and `folder/questions.jsonl`; the folder must be absent or empty.

    `protocol`, a name or a folder, decides the questions; the studies do not depend on it.

    All files are written to a temporary folder that is renamed at the end, so a killed run leaves no partial
    cohort.
    """
    ids, tasks = planned(spec, folder), load_catalogue(protocol)
    check_heart(tasks.anatomy, "dataset.phantom")
    with disk.draft_folder(folder) as draft:
        by_study = _written(ids, spec, draft / STUDIES, tasks)
        write_questions(draft / questions, [record for of_study in by_study for record in of_study])
        _write_json(draft / _OPTIONS, spec.model_dump(mode="json"))


def check_options(spec: PhantomSpec, folder: Path) -> None:
    """Raise InputError if the cohort in a folder was made with other options; earlier versions kept none."""
    try:
        made = PhantomSpec.model_validate(read_json(folder / _OPTIONS))
    except FileNotFoundError:
        return
    except (OSError, ValueError):
        raise InputError(f"{folder / _OPTIONS}: cannot be read; delete {folder}") from None
    told = [f"dataset.phantom.{name}={value}" for name, value in made if value != getattr(spec, name)]
    if told:
        raise InputError(
            f"{folder}: was made with {' '.join(told)}; give the same, delete the folder, or give "
            "dataset.studies and dataset.questions in another one"
        )


def add_questions(spec: PhantomSpec, folder: Path, protocol: str, questions: str) -> None:
    """Write the questions of another protocol beside a cohort; InputError if its studies are other ones."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        make_cohort(spec, Path(place) / "cohort", protocol, questions=questions)
        again = Path(place) / "cohort"
        if digest_of_tree(again / STUDIES) != digest_of_tree(folder / STUDIES):
            raise InputError(
                f"{folder}: its studies are not those that this version makes with these options, so their "
                f"answers under {protocol} are not known; delete the folder, or give dataset.studies and "
                "dataset.questions in another one"
            )
        (again / questions).replace(folder / questions)


def planned(spec: PhantomSpec, folder: Path) -> list[str]:
    """Return the study ids of a new cohort; InputError if the cohort or the folder cannot be used."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: is not empty; give a folder that is absent or empty, or delete it first")
    return roster(spec)


def write_study(
    study_id: str, spec: PhantomSpec, studies: Path, tasks: Catalogue | None = None
) -> list[Record]:
    """Render a study, and its twin if wanted; write them under `studies` and return their `qa-1` records."""
    tasks = tasks or catalogue()
    drawn_study = study(spec.seed, study_id)
    study_records, windows = _write(drawn_study, spec, studies, tasks, patient_id=study_id)
    if "twins" in spec.also and (twin := without_lesions(drawn_study)):
        of_twin, _ = _write(twin, spec, studies, tasks, patient_id=study_id, windows=windows)
        study_records += [record for record in of_twin if record["tier"] == 1]
    return study_records


def _write(
    phantom: Study,
    spec: PhantomSpec,
    studies: Path,
    tasks: Catalogue,
    *,
    patient_id: str,
    windows: Mapping[str, Window] = MappingProxyType({}),
) -> tuple[list[Record], dict[str, Window]]:
    """Write a study; return its records and, by volume, the window in which it is shown.

    `windows` are declared in place of its own.
    """
    size, study_id = sizes()[spec.size], phantom.study_id
    folder = studies / study_id
    folder.mkdir(parents=True)
    heart = Heart(phantom.parameters)
    look = appearance(spec.difficulty, phantom.seed, size.spacing_mm)
    first = first_phase(phantom.seed, heart, size.phases) if "drawn_cycle" in spec.also else 0
    volumes = []
    own_windows: dict[str, Window] = {}
    slices: dict[str, list[Record]] = {}
    for view in views().values():
        rendered = render(heart, view, size, look=look, seed=phantom.seed, masks="masks" in spec.also)
        rendered = rendered.beginning_at(first)
        entry = write_volume(folder, rendered, size)
        if view.code in windows:
            entry["window"] = list(windows[view.code])
        elif "twins" in spec.also:
            scale = grey_scale(rendered.frames, WINDOW_PCT, 1.0, 0.0)
            own_windows[view.code] = scale.low, scale.high
        volumes.append(entry)
        slices.setdefault(view.sequence, []).extend(lesion_slices(rendered, size))
    study_findings = findings(phantom.truth)
    study_findings |= quantity_findings(heart, tasks, size.phases, first)
    texts = reports(study_findings, phantom.seed, tasks, SEQUENCES)
    manifest = {
        "schema": "study-1",
        "study_id": study_id,
        "patient_id": patient_id,
        "cohort": ["full", "public"] if phantom.public else ["full"],
        "species": "phantom",
        "report_id": None,
        "volumes": volumes,
    }
    _write_json(folder / "study.json", manifest)
    _write_json(folder / "phantom.json", {"schema": "phantom-1", **asdict(phantom)})
    if "masks" in spec.also:
        names = {str(code): name for code, name in codes.labels().items()}
        _write_json(folder / "masks" / "labels.json", names)
    study_records = records(study_id, tasks, study_findings, sequences=SEQUENCES, reports=texts)
    for record in study_records:
        record["patient_id"] = patient_id
        if slices.get(record["sequence"]) and _is_lesion(record, tasks):
            record["evidence_slices"] = slices[record["sequence"]]
    return study_records, own_windows


def _written(ids: list[str], spec: PhantomSpec, studies: Path, tasks: Catalogue) -> Iterable[list[Record]]:
    """Write studies one after another, or by tasks of Ray if it is initialised; return records in order."""
    ray = sys.modules.get("ray")
    if ray is None or not ray.is_initialized():
        return (write_study(study_id, spec, studies, tasks) for study_id in ids)
    remote, shared = ray.remote(write_study), ray.put(tasks)
    try:
        records: list[list[Record]] = ray.get(
            [remote.remote(study_id, spec, studies.absolute(), shared) for study_id in ids]
        )
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None  # an OSError as it was raised
    return records


def lesion_slices(rendered: Rendered, size: Size) -> list[Record]:
    """Return the evidence slices of one volume; none without masks, or of a sequence with phases."""
    if rendered.masks is None or rendered.view.sequence not in _WITH_LESIONS:
        return []
    lesion = (rendered.masks >= codes.LESION) & (rendered.masks < codes.DARK_RIM)
    areas = lesion.sum(axis=(1, 2)) * size.spacing_mm**2
    return [
        {"volume_id": rendered.view.code, "slice": rank}
        for rank, area in enumerate(areas)
        if area >= LEAST_MM2
    ]


def _is_lesion(record: Mapping[str, Any], catalogue: Catalogue) -> bool:
    """Whether the answer is an abnormality of tissue; what is normal is seen on no single slice."""
    normal = {option.key for option in catalogue[record["subtask"]].options if option.normal}
    return bool(record.get("answer")) and not normal & set(record["answer"])
