"""Make synthetic brains with known findings: `python make_brains.py brains 12`, then `dataset=brain`.

A head is an ellipsoid cut off below, with two dark ventricles. Voxel axes run to the patient's left, back and
head.
"""

import json
import sys
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np

SHAPE, SPACING = (40, 48, 12), (4.5, 4.0, 10.0)
X, Y, Z = np.meshgrid(*(np.linspace(-1, 1, n) for n in SHAPE), indexing="ij")
HEAD = X**2 + Y**2 + (0.45 * (Z + 1)) ** 2 < 0.9
VENTRICLES = ((np.abs(X) - 0.12) / 0.07) ** 2 + (Y / 0.3) ** 2 + (Z / 0.5) ** 2 < 1
LEVELS = {"A": -0.75, "B": 0.0, "C": 0.6}  # heights of the thirds
AXIAL = np.diag([-SPACING[0], -SPACING[1], SPACING[2], 1])  # NIfTI counts to the right and to the front
CORONAL = np.array([[-SPACING[0], 0, 0, 0], [0, 0, -4 * SPACING[1], 0], [0, -SPACING[2], 0, 0], [0, 0, 0, 1]])


def blob(x: float, y: float, z: float, radius: float) -> Any:
    """Return where a ball is."""
    return (X - x) ** 2 + (Y - y) ** 2 + (0.5 * (Z - z)) ** 2 < radius**2


def findings(number: int, rng: np.random.Generator) -> dict[str, list[str]]:
    """Return the answers of one study; diagnoses take turns, the rest is drawn."""
    diagnosis = "ABCD"[number % 4]
    levels = sorted(rng.choice(list(LEVELS), rng.integers(1, 4), replace=False)) if diagnosis == "B" else []
    answers = {"B01": ["B" if levels else "A"], "B03": ["B" if diagnosis == "C" else "A"]}
    answers |= {"B05": ["B" if diagnosis == "D" else "A"], "B06": [diagnosis]}
    return (
        answers
        | ({"B02": levels} if levels else {})
        | ({"B04": [rng.choice(["A", "B"])]} if diagnosis == "C" else {})
    )


def volumes(answers: dict[str, list[str]], rng: np.random.Generator) -> dict[str, Any]:
    """Return what each sequence shows of the findings, between 0 and 1."""
    tissue = np.where(HEAD, np.where(VENTRICLES, 0.1, 0.45), 0.0)
    flair, contrast, diffusion = tissue.copy(), tissue.copy(), 0.6 * tissue
    for level in answers.get("B02", []):
        flair[blob(rng.choice([-0.45, 0.45]), rng.uniform(-0.3, 0.3), LEVELS[level], 0.14)] = 0.95
    if "B04" in answers:
        contrast[blob(0.45 if answers["B04"] == ["B"] else -0.45, rng.uniform(-0.3, 0.3), 0.1, 0.2)] = 1.0
    if answers["B05"] == ["B"]:
        diffusion[blob(rng.choice([-0.45, 0.45]), rng.uniform(-0.3, 0.3), 0.1, 0.2)] = 1.0
    noisy = [image + rng.normal(0, 0.02, SHAPE) for image in (flair, contrast, diffusion)]
    coronal = noisy[1][:, ::4, ::-1].transpose(0, 2, 1)  # left, down, back
    return {"flair_ax": noisy[0], "t1c_ax": noisy[1], "t1c_cor": coronal, "dwi_ax": noisy[2]}


SEQUENCES = {"flair": "flair", "t1c": "t1_contrast", "dwi": "diffusion"}
ORDERS = {"ax": "inferior_to_superior", "cor": "anterior_to_posterior"}


def write(folder: Path, images: dict[str, Any]) -> None:
    """Write one study folder."""
    folder.mkdir(parents=True)
    entries = []
    for name, image in images.items():
        prefix, view = name.split("_")
        stored = nib.Nifti1Image((1000 * image).astype(np.int16), AXIAL if view == "ax" else CORONAL)
        stored.header.set_xyzt_units("mm")
        nib.save(stored, folder / f"{name}.nii.gz")
        place = {"sequence": SEQUENCES[prefix], "view": view, "path": f"{name}.nii.gz"}
        entries.append(place | {"spatial_order": ORDERS[view], "display_transform": {"transpose": True}})
    about = {"schema": "study-1", "study_id": folder.name, "patient_id": folder.name, "species": "synthetic"}
    (folder / "study.json").write_text(json.dumps(about | {"volumes": entries}, indent=1))


def make(folder: Path, count: int, seed: int = 2026) -> None:
    """Write `count` studies and their questions."""
    lines = []
    for number in range(count):
        rng, name = np.random.default_rng([seed, number]), f"BR-{number:04d}"
        answers = findings(number, rng)
        write(folder / "studies" / name, volumes(answers, rng))
        lines += [
            json.dumps({"study": name, "subtask": subtask, "answer": [str(key) for key in keys]})
            for subtask, keys in sorted(answers.items())
        ]
    (folder / "questions.jsonl").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    make(Path(sys.argv[1]), int(sys.argv[2]))
