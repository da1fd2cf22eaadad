"""Control lesion: a heart and its twin differ where the lesion is, and known readers are found out."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import ndimage
from small_cohort import reader, sweep_spec, swept

from cardiolens.config.dataset import PhantomSpec, Windows
from cardiolens.inference.plan.plan import Plan
from cardiolens.phantom import codes
from cardiolens.phantom.phantom_cohort import make_cohort
from cardiolens.protocol.tasks.questions import twin_of
from cardiolens.score.run_results.scoring import RunResults
from cardiolens.storage import schemas, tables
from cardiolens.study.cohort import Cohort, write_cohort
from cardiolens.study.group import prepare_group
from cardiolens.study.nifti import parse_header, read_file, voxels

pytestmark = pytest.mark.full

NAMES = ("PH-NORMAL", "PH-ICM-LAD", "PH-INFLAM", "PH-HCM-ASH", "PH-ICM-RCA")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("twins")
    make_cohort(PhantomSpec(canonical=NAMES, also=("masks", "twins")), root / "data")
    folders = sorted((root / "data" / "studies").iterdir())
    outcomes = prepare_group(root / "store", "part-0.parquet", folders, Windows(pct=(1.0, 99.0)))
    studies = {outcome.name: outcome.record for outcome in outcomes}
    write_cohort(root / "store", Cohort(window_pct=(1.0, 99.0), studies=studies, failed={}))
    return root


def spec_of(root: Path, *models: dict[str, Any], **changes: Any) -> Any:
    data = {"name": "twins", "studies": root / "data/studies", "questions": root / "data/questions.jsonl"}
    subtasks = ["C10", "L01", "L02", "L05", "P01", "T01"]
    return sweep_spec(root, *models, **{"dataset": data, "subtask": subtasks, **changes})


def shown(root: Path, study: str, volume: str) -> list[np.ndarray]:
    rows = tables.read_part(root / "store" / "frames" / "part-0.parquet", schemas.FRAMES).to_pylist()
    return [
        np.frombuffer(row["pixels"], np.uint8).reshape(row["height"], row["width"])
        for row in sorted(rows, key=lambda row: row["idx"])
        if (row["study_id"], row["volume_id"]) == (study, volume)
    ]


def test_a_heart_without_lesions_has_no_twin(root: Path) -> None:
    names = {folder.name for folder in (root / "data" / "studies").iterdir()}
    assert twin_of("PH-NORMAL") not in names
    assert {twin_of(name) for name in NAMES[1:]} <= names


@pytest.mark.parametrize("volume", ["lge_sax", "t2_sax", "perf_sax", "cine_sax"])
def test_pixels_as_shown_differ_where_the_lesion_is_and_nowhere_else(root: Path, volume: str) -> None:
    name = "PH-INFLAM"
    stored = read_file(root / "data" / "studies" / name / "masks" / f"{volume}.nii.gz")
    header = parse_header(stored)
    pairs = list(zip(shown(root, name, volume), shown(root, twin_of(name), volume), strict=True))
    masks = voxels(stored, header).reshape(len(pairs), *pairs[0][0].shape)[:, ::-1]
    lesion = (masks >= codes.LESION) & (masks < codes.DARK_RIM)
    changed = np.array([one != other for one, other in pairs])
    near = np.array([ndimage.binary_dilation(mask, iterations=2) for mask in lesion])
    assert not (changed & ~near).any()
    assert changed.any() == lesion.any()


@pytest.fixture(scope="module")
def run(root: Path) -> tuple[Plan, RunResults]:
    readers = [reader("oracle"), reader("constant", answer="A"), reader("noisy", error=0.5)]
    return swept(spec_of(root, *readers, control=["none", "lesion", "other_patient"]))


def test_an_oracle_moves_where_it_must_and_only_there(run: tuple[Plan, RunResults]) -> None:
    planned, judged = run
    model = {arm.arm_id: arm.model.name for arm in planned.arms}
    found = {
        (model[row["arm_id"]], row["metric"]): row
        for row in judged.scores.to_pylist()
        if "moved" in row["metric"] or "right_with" in row["metric"]
    }
    assert found["oracle", "moved_with_lesion"]["value"] == 100
    assert found["oracle", "right_with_and_without"]["value"] == 100
    strayed = found["oracle", "moved_without_cause"]
    assert (strayed["value"], strayed["n_patients"]) == (0, 4)
    assert found["noisy", "moved_without_cause"]["value"] > 0
    assert found["constant", "moved_with_lesion"]["value"] == 0
    assert found["oracle", "moved_with_lesion"]["n_patients"] == 4
    assert found["noisy", "right_with_and_without"]["value"] < 100
