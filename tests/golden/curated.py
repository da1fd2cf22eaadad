"""Goldens of curation: imported volumes voxel by voxel, drafts of questions, a release."""

import hashlib
import json
import re
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import UUID

import nibabel
import numpy as np
from pyarrow import parquet

from bench import other_scanners, repackaged_sets
from bench.report_drafts import made as make_report_folders
from bench.report_drafts import run
from cardiolens.config.curation_specs import IngestSpec
from cardiolens.config.dataset import PhantomSpec
from cardiolens.curation.ingest.import_run import ingest
from tests.golden.planned import digest
from tests.support.dicom.dicom_export import make_export
from tests.support.dicom.exam import ExportSpec
from tests.support.dicom.habits import habits
from tests.support.sets.set_writers import SETS
from tests.unit.curation.ingest.set_phantoms import hearts, write_set
from tests.unit.curation.release.released_phantoms import release_phantoms

DICOM = Path(__file__).resolve().parents[3] / "shared" / "dicom"
MAKERS = ("siemens", "ge", "philips", "enhanced")
FACTS = (
    "shape",
    "spacing_mm",
    "spatial_order",
    "ed_phase",
    "es_phase",
    "display_transform",
    "t_on",
    "t_peak",
)


def real_exports(folder: Path) -> dict[str, Any]:
    """The shared real exports of Siemens and GE."""
    return imported(DICOM, folder)


def makers(folder: Path) -> dict[str, Any]:
    """One phantom as the DICOM of four makers."""
    found = {}
    for maker in MAKERS:
        make_export(PhantomSpec(canonical=("PH-ICM-LAD",)), ExportSpec(vendor=maker), folder / maker)
        found[maker] = imported(folder / maker / "export", folder / f"{maker}-out")
    return found


def public_sets(folder: Path) -> dict[str, Any]:
    """Two phantoms in the layouts of seven public sets."""
    subjects = hearts(("PH-NORMAL", "PH-ICM-LAD"))
    found = {}
    for form in SETS:
        write_set(subjects, form, folder / form)
        found[form] = imported(folder / form, folder / f"{form}-out", layout=form)
    return found


def habits_of_scanners(folder: Path) -> dict[str, Any]:
    """What the import makes of each habit of `bench/other_scanners.py`."""
    found = {}
    for name, habit in sorted(habits().items()):
        plain = other_scanners.make(folder / habit.vendor, habit.vendor, 4711)
        export = other_scanners.make(folder / name, habit.vendor, 4711, name)
        exam = other_scanners.exam_as_written(plain)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pydicom complains of what the habits write
            found[name] = _row(other_scanners.answer(export, folder / f"{name}.out", exam))
    return found


def traits_of_sets(folder: Path) -> dict[str, Any]:
    """What the import makes of each trait of `bench/repackaged_sets.py`."""
    found = {}
    for name, trait in repackaged_sets.TRAITS.items():
        home = folder / name.replace(" ", "_")
        subjects = repackaged_sets.hearts_of(trait.form, ("PH-NORMAL", "PH-ICM-LAD"))
        SETS[trait.form].write(home / "export", subjects)
        trait.change(home / "export")
        found[name] = _row(repackaged_sets.verdict(trait.form, subjects, home / "export", home / "out"))
    return found


def _row(told: other_scanners.Answer | repackaged_sets.Verdict) -> dict[str, Any]:
    lists = {name: sorted(getattr(told, name)) for name in ("right", "waits", "wrong")}
    return lists | {"refused": bool(told.refused), "left out": dict(sorted(told.reasons.items()))}


def imported(source: Path, out: Path, **options: Any) -> dict[str, Any]:
    """Facts and voxels (by digest) of every volume that an import takes; the number of refused files."""
    ingest(IngestSpec(source=source, out=out / "out", links=out / "links", **options))
    volumes = []
    for path in (out / "out" / "studies").glob("*/study.json"):
        manifest = json.loads(path.read_text(encoding="utf-8"))
        for volume in manifest["volumes"]:
            image = nibabel.load(path.parent / volume["path"])
            voxels = np.ascontiguousarray(np.asarray(image.dataobj), "<f4")
            named = f"{volume['sequence']} {volume['view']}"
            affine = np.round(image.affine, 4).tolist()
            volumes.append(
                [
                    named,
                    *(volume.get(fact) for fact in FACTS),
                    affine,
                    hashlib.sha256(voxels).hexdigest()[:16],
                ]
            )
    refused = sum(len(one.read_text("utf-8").splitlines()) for one in out.rglob("rejects.jsonl"))
    return {"volumes": sorted(volumes, key=json.dumps), "refused": refused}


def drafts(folder: Path) -> dict[str, Any]:
    """Drafts of 100 free-text reports by rules."""
    make_report_folders(folder, 104729, 100)
    text = folder / "text"
    words = [f"reports={text}/reports", f"links={text}/reports.csv", f"studies={folder}/studies"]
    run(["-m", "cardiolens.questions", *words, f"out={folder}/draft"])
    lines = (folder / "draft" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    found: dict[str, str] = {}
    for one in map(json.loads, lines):
        found[one["study"]] = (
            f"{found.get(one['study'], '')} {one['subtask']}={''.join(one['answer'])}".strip()
        )
    return {"drafts": dict(sorted(found.items()))}


def released(folder: Path) -> dict[str, Any]:
    """A release of three phantoms with frames: every file by its digest, ids drawn from fixed secrets."""
    fixed = UUID(int=2026)
    with patch("secrets.token_hex", lambda _: "00ff" * 8), patch("uuid.uuid4", lambda: fixed):
        out = release_phantoms(folder, "frames=true")
    return {
        "files": {
            str(path.relative_to(out)): _content(path) for path in sorted(out.rglob("*")) if path.is_file()
        }
    }


def _content(path: Path) -> str:
    """Digest of a file: rows of a table; a text without version, dates and digests of other files."""
    if path.suffix == ".parquet":
        return digest(parquet.read_table(path).to_pylist())
    stored = path.read_bytes()
    if path.suffix in {".md", ".json", ".jsonl"}:
        text = stored.decode("utf-8").replace(version("cardiolens"), "VERSION")
        stored = re.sub(
            r"\d{4}-\d\d-\d\d[T0-9:.+Z-]*|\b[0-9a-f]{64}\b|\"(bytes|contentSize)\": [^,\n]+", "", text
        ).encode()
    return hashlib.sha256(stored).hexdigest()[:16]
