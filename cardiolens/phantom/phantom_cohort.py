"""Write a cohort of phantom studies in the folder layout of any dataset: studies and a questions file."""

import json
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cardiolens.base import disk
from cardiolens.base.digest import digest_of_tree
from cardiolens.base.errors import InputError
from cardiolens.config.dataset import WINDOW_PCT, PhantomSpec
from cardiolens.phantom import codes
from cardiolens.phantom.appearance import appearance
from cardiolens.phantom.fixed_reports import reports
from cardiolens.phantom.geometry import Heart
from cardiolens.phantom.planes import Size, sizes, views
from cardiolens.phantom.quantities import first_phase, quantity_findings
from cardiolens.phantom.render import Rendered, render
from cardiolens.phantom.roster import PROTOCOL, SEQUENCES, catalogue, roster, study
from cardiolens.phantom.sampler import Study, without_lesions
from cardiolens.phantom.study_writer import write_labels, write_records, write_volume
from cardiolens.protocol.tasks.catalogue import Catalogue, load_catalogue
from cardiolens.protocol.tasks.instantiate import records
from cardiolens.protocol.tasks.questions import write_questions
from cardiolens.protocol.tasks.truth import findings
from cardiolens.study.anatomy import check_heart
from cardiolens.study.windowing import grey_scale

Window = tuple[float, float]  # intensities shown as black and white
STUDIES, QUESTIONS = "studies", "questions.jsonl"
_WITH_LESIONS = ("lge", "t2")  # of one frame a slice
LEAST_MM2 = 20.0  # of lesion, by which a slice shows it
Slices = Mapping[str, list[dict[str, Any]]]  # evidence slices by sequence


def make_cohort(
    spec: PhantomSpec,
    folder: Path,
    protocol: str = PROTOCOL,
    *,
    questions: str = QUESTIONS,
) -> None:
    """Make `folder/studies/<id>/` and `folder/questions.jsonl`; the folder must be absent or empty.

    `protocol`, a name or a folder, decides the questions; the studies do not depend on it.

    Ray Data makes the studies in parallel if Ray is initialised; otherwise they are made one after another.
    All files are written to a temporary folder that is renamed at the end, so a killed run leaves no partial
    cohort.
    """
    ids, tasks = planned(spec, folder), load_catalogue(protocol)
    check_heart(tasks.anatomy, "dataset.phantom")
    with disk.draft_folder(folder) as draft:
        records = [
            record
            for study_records in _written(ids, spec, draft / STUDIES, tasks)
            for record in study_records
        ]
        write_questions(draft / questions, records)


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
) -> list[dict[str, Any]]:
    """Render a study, and its twin if wanted; write them under `studies` and return their `qa-1` records."""
    tasks = tasks or catalogue()
    drawn_study = study(spec.seed, study_id)
    study_records, windows = _write(drawn_study, spec, studies, tasks)
    if spec.twins and (twin := without_lesions(drawn_study)):
        of_twin, _ = _write(twin, spec, studies, tasks, patient_id=study_id, windows=windows)
        study_records += [record for record in of_twin if record["tier"] == 1]
    return study_records


def _write(
    drawn_study: Study,
    spec: PhantomSpec,
    studies: Path,
    tasks: Catalogue,
    *,
    patient_id: str | None = None,
    windows: Mapping[str, Window] = MappingProxyType({}),
) -> tuple[list[dict[str, Any]], dict[str, Window]]:
    """Write a study; return its records and, by volume, the window in which it is shown.

    `windows` are declared in place of its own.
    """
    size, study_id = sizes()[spec.size], drawn_study.study_id
    folder = studies / study_id
    folder.mkdir(parents=True)
    heart, look = (
        Heart(drawn_study.parameters),
        appearance(spec.difficulty, drawn_study.seed, size.spacing_mm),
    )
    first = first_phase(drawn_study.seed, heart, size.phases) if spec.cycle == "drawn" else 0
    volumes = []
    own_windows: dict[str, Window] = {}
    slices: dict[str, list[dict[str, Any]]] = {}
    for view in views().values():
        rendered = render(heart, view, size, look=look, seed=drawn_study.seed, masks=spec.masks)
        rendered = rendered.beginning_at(first)
        entry = write_volume(folder, rendered, size)
        if spec.twins:
            own_windows[view.code] = windows.get(view.code) or _window(rendered)
        volumes.append(entry | ({"window": list(windows[view.code])} if view.code in windows else {}))
        slices.setdefault(view.sequence, []).extend(lesion_slices(rendered, size))
    study_findings = findings(drawn_study.truth)
    study_findings |= quantity_findings(heart, tasks, size.phases, first)
    texts = reports(study_findings, drawn_study.seed, tasks, SEQUENCES)
    write_records(folder, drawn_study, volumes, texts, patient_id or study_id)
    if spec.masks:
        write_labels(folder)
    study_records = records(study_id, tasks, study_findings, sequences=SEQUENCES, reports=texts)
    study_records = [record | {"patient_id": patient_id or study_id} for record in study_records]
    return with_slices(study_records, tasks, slices), own_windows


def _window(rendered: Rendered) -> Window:
    scale = grey_scale(rendered.frames, WINDOW_PCT, 1.0, 0.0)
    return scale.low, scale.high


def _written(
    ids: list[str], spec: PhantomSpec, studies: Path, tasks: Catalogue
) -> Iterable[list[dict[str, Any]]]:
    ray = sys.modules.get("ray")
    if ray is None or not ray.is_initialized():
        return (write_study(study_id, spec, studies, tasks) for study_id in ids)
    return _written_by_ray(ids, spec, studies.absolute(), tasks)


def _written_by_ray(
    ids: list[str], spec: PhantomSpec, studies: Path, tasks: Catalogue
) -> Iterator[list[dict[str, Any]]]:
    """Yield records in the order of the ids; only ids and JSON pass through Ray."""
    import ray.data

    def write(row: dict[str, Any]) -> dict[str, Any]:
        try:
            return {**row, "records": json.dumps(write_study(row["id"], spec, studies, tasks)), "problem": ""}
        except OSError as error:  # returned as a row: Ray would wrap a raised error in its own type
            return {**row, "records": "", "problem": error.strerror or str(error)}

    rows = [{"place": place, "id": study_id} for place, study_id in enumerate(ids)]
    results = ray.data.from_items(rows, override_num_blocks=len(rows)).map(write).take_all()
    for row in sorted(results, key=lambda row: int(row["place"])):
        if row["problem"]:
            raise OSError(0, row["problem"])
        yield json.loads(row["records"])


def lesion_slices(rendered: Rendered, size: Size) -> list[dict[str, Any]]:
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


def with_slices(
    records: Iterable[dict[str, Any]], catalogue: Catalogue, slices: Slices
) -> list[dict[str, Any]]:
    """Add evidence slices to the `qa-1` records whose answer is a lesion that was seen."""
    return [
        record | {"evidence_slices": slices[record["sequence"]]}
        if slices.get(record["sequence"]) and _is_lesion(record, catalogue)
        else record
        for record in records
    ]


def _is_lesion(record: Mapping[str, Any], catalogue: Catalogue) -> bool:
    """Whether the answer is an abnormality of tissue; what is normal is seen on no single slice."""
    normal = {option.key for option in catalogue[record["subtask"]].options if option.normal}
    return bool(record.get("answer")) and not normal & set(record["answer"])
