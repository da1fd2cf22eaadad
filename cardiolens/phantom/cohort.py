"""A cohort of phantom studies as a folder that any dataset could be: studies and one questions file."""

import json
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from cardiolens.errors import InputError, RunError
from cardiolens.phantom.appearance import appearance
from cardiolens.phantom.planes import sizes, views
from cardiolens.phantom.render import render
from cardiolens.phantom.sampler import Study, canonical_study, sampled_study
from cardiolens.phantom.write import write_labels, write_records, write_volume
from cardiolens.spec import PhantomSpec
from cardiolens.tasks.catalogue import Catalogue, load_catalogue
from cardiolens.tasks.instantiate import records
from cardiolens.tasks.questions import write_questions
from cardiolens.tasks.truth import findings

_PROTOCOL = "openprotocol-1"


def make_cohort(spec: PhantomSpec, folder: Path) -> None:
    """Make `folder/studies/<id>/` and `folder/questions.jsonl`; the folder is absent or empty before.

    Studies are made in parallel by Ray Data where Ray is initialised, else one after another. Everything is
    written beside the folder and renamed at the end, so that a killed run leaves nothing half made.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: is not empty; give a folder that is absent or empty, or delete it first")
    cohort = cohort_studies(spec)
    beside = folder.with_name(f".{folder.name}.making")
    try:
        shutil.rmtree(beside, ignore_errors=True)
        (beside / "studies").mkdir(parents=True)
        asked = [record for written in _written(cohort, spec, beside / "studies") for record in written]
        write_questions(beside / "questions.jsonl", asked)
        if folder.exists():
            folder.rmdir()
        beside.replace(folder)
    except OSError as error:
        reason = error.strerror or error
        raise RunError(f"{folder}: cannot be written ({reason}); free space or check permissions") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def cohort_studies(spec: PhantomSpec) -> list[Study]:
    """The studies of a cohort in order: canonical ones as named, then sampled ones; nothing is rendered."""
    if not spec.canonical and not spec.n_sampled:
        raise InputError("a phantom cohort of 0 studies: set n_sampled above 0 or name canonical studies")
    repeated = {name for name in spec.canonical if spec.canonical.count(name) > 1}
    if repeated:
        raise InputError(f"canonical studies {sorted(repeated)} are named twice; name each once")
    named = [canonical_study(spec.seed, name) for name in spec.canonical]
    return named + [sampled_study(spec.seed, number) for number in range(1, spec.n_sampled + 1)]


def write_study(study: Study, spec: PhantomSpec, studies: Path, catalogue: Catalogue) -> list[dict[str, Any]]:
    """Render and write one study under `studies`, and return its `qa-1` records."""
    folder, size = studies / study.study_id, sizes()[spec.size]
    folder.mkdir()
    look = appearance(spec.difficulty, study.seed, size.spacing_mm)
    volumes = [
        write_volume(folder, render(study.parameters, view, size, look, study.seed, masks=spec.masks), size)
        for view in views().values()
    ]
    found = findings(study.truth)
    write_records(folder, study, volumes, {})
    if spec.masks:
        write_labels(folder)
    sequences = {view.sequence for view in views().values()}
    return records(study.study_id, catalogue, found, sequences=sequences, reports={})


def _written(cohort: list[Study], spec: PhantomSpec, studies: Path) -> Iterable[list[dict[str, Any]]]:
    ray = sys.modules.get("ray")
    if ray is None or not ray.is_initialized():
        catalogue = load_catalogue(_PROTOCOL)
        return (write_study(study, spec, studies, catalogue) for study in cohort)
    return _written_by_ray(len(cohort), spec, studies)


def _written_by_ray(count: int, spec: PhantomSpec, studies: Path) -> Iterator[list[dict[str, Any]]]:
    """Records in cohort order; rows carry numbers and JSON, studies are drawn where they are rendered."""
    import ray.data

    def write(row: dict[str, Any]) -> dict[str, Any]:
        study = cohort_studies(spec)[row["id"]]
        asked = write_study(study, spec, studies.absolute(), load_catalogue(_PROTOCOL))
        return {"id": row["id"], "records": json.dumps(asked)}

    rows = ray.data.range(count, override_num_blocks=count).map(write).take_all()
    return (json.loads(row["records"]) for row in sorted(rows, key=lambda row: row["id"]))
