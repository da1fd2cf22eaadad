"""Evidence slices of phantoms: those whose mask has a lesion, and only where the answer is a lesion."""

import json
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from cardiolens.config.dataset import PhantomSpec
from cardiolens.phantom.phantom_cohort import LEAST_MM2, write_study


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lesions")


def spec(name: str) -> PhantomSpec:
    return PhantomSpec(canonical=(name,), also=("masks",))


def test_slices_are_those_whose_mask_file_has_a_lesion(folder: Path) -> None:
    """Read back from the files by their labels; the phantom's codes are not used."""
    records = {record["subtask"]: record for record in write_study("PH-ICM-LAD", spec("PH-ICM-LAD"), folder)}
    masks = folder / "PH-ICM-LAD" / "masks"
    labels = json.loads((masks / "labels.json").read_text())
    lesion = [int(value) for value, name in labels.items() if name.startswith(("lesion", "microvascular"))]
    expected = []
    for name in ("lge_sax", "lge_4ch", "lge_3ch", "lge_2ch"):
        image = nib.load(masks / f"{name}.nii.gz")
        area = image.header.get_zooms()[0] * image.header.get_zooms()[1]
        inside = np.isin(np.asarray(image.dataobj), lesion).sum(axis=(0, 1))
        expected += [(name, rank) for rank, count in enumerate(inside) if count * area >= LEAST_MM2]
    for subtask in ("L01", "L02", "L03", "L04", "L05"):
        named = [(entry["volume_id"], entry["slice"]) for entry in records[subtask]["evidence_slices"]]
        assert sorted(named) == sorted(expected)
    assert 3 < len(expected) < 16
    assert all("evidence_slices" not in records[subtask] for subtask in ("C01", "P01", "D01", "R-LGE"))


def test_what_is_normal_names_none(folder: Path) -> None:
    healthy = write_study("PH-NORMAL", spec("PH-NORMAL"), folder)
    assert not any("evidence_slices" in record for record in healthy)
