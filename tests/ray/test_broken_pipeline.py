"""The pipeline from pixels to scores, broken on purpose: a reader that reads must score lower.

Each break is made in copies of the same studies, as a fault of the software would make it: what reaches the
model is wrong, and questions and captions are right. The small reader answers all copies in one sweep.
"""

import hashlib
import json
import shutil
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest
from numpy.typing import NDArray

from cardiolens import tables
from cardiolens.config.dataset import PhantomSpec
from cardiolens.phantom.cohort import make_cohort
from tests.ray.conftest import Place

pytestmark = pytest.mark.ray

STUDIES = 20
SEED = 61007  # of no cohort that was learned from
Voxels = NDArray[np.int16]
Break = Callable[[Voxels, dict[str, Any]], Voxels]


def untouched(voxels: Voxels, volume: dict[str, Any]) -> Voxels:
    return voxels


def frames_reversed(voxels: Voxels, volume: dict[str, Any]) -> Voxels:
    return voxels[:, :, ::-1]


def one_slice_off(voxels: Voxels, volume: dict[str, Any]) -> Voxels:
    return np.roll(voxels, volume["layout"]["n_phases"], axis=2)


def one_phase_off_by_a_third(voxels: Voxels, volume: dict[str, Any]) -> Voxels:
    phases = volume["layout"]["n_phases"]
    slices = voxels.reshape(*voxels.shape[:2], -1, phases)
    return np.roll(slices, phases // 3, axis=3).reshape(voxels.shape)


def turned(voxels: Voxels, volume: dict[str, Any]) -> Voxels:
    return np.rot90(voxels, axes=(0, 1))


def window_ignored(voxels: Voxels, volume: dict[str, Any]) -> Voxels:
    volume["window"] = [-32768.0, 32767.0]
    return voxels


BREAKS: dict[str, Break] = {
    one.__name__: one
    for one in (
        untouched,
        frames_reversed,
        one_slice_off,
        one_phase_off_by_a_third,
        turned,
        window_ignored,
    )
}
SWAPPED = "wrong_study_every_tenth"


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, bool]]:
    """Whether each question was answered rightly, by break and the question's id without it."""
    root = tmp_path_factory.mktemp("broken")
    spec = PhantomSpec(
        seed=SEED, canonical=[], n_sampled=STUDIES, size="ci", difficulty="standard", masks=False
    )
    make_cohort(spec, root / "made")
    broken_copies(root / "made", root / "broken")
    place = Place(root, root / "broken")
    place.sweep(
        *("dataset=real", "name=broken", "model=[reader_small]", "selector=[clinical]", "budget=[8]"),
        *("answer_format=choice", "tracker=none", "statistics.resamples=100"),
    )
    found: dict[str, dict[str, bool]] = defaultdict(dict)
    for row in tables.read(place.run / "verdicts", tables.VERDICTS).to_pylist():
        if row["channel"] == "answer" and row["status"] == "judged":
            how, _, question = row["qa_id"].partition("-")
            found[how][question] = row["correct"]
    return dict(found)


def broken_copies(made: Path, out: Path) -> None:
    """Studies with each break, and questions on each copy under ids that begin with the break's name."""
    questions = [json.loads(line) for line in (made / "questions.jsonl").read_text().splitlines()]
    asked = []
    for name, change in BREAKS.items():
        for folder in sorted((made / "studies").iterdir()):
            copied(folder, out / "studies" / f"{name}-{folder.name}", change)
        for question in questions:
            asked.append(renamed(question, name, question["study_id"]))
    others = sorted({question["study_id"] for question in questions})
    for number, question in enumerate(questions):
        if question["answer_type"] == "report":
            continue
        shown = question["study_id"]
        if number % 10 == 0:
            shown = others[(others.index(shown) + len(others) // 2) % len(others)]
        asked.append(renamed(question, SWAPPED, shown, of="untouched"))
    text = "".join(json.dumps(question) + "\n" for question in asked)
    (out / "questions.jsonl").write_text(text)


def copied(folder: Path, to: Path, change: Break) -> None:
    shutil.copytree(folder, to)
    path = to / "study.json"
    study = json.loads(path.read_text())
    study["study_id"] = study["patient_id"] = to.name
    for volume in study["volumes"]:
        file = to / volume["path"]
        image = nibabel.load(file)
        changed = change(np.asanyarray(image.dataobj), volume)
        nibabel.save(nibabel.Nifti1Image(np.ascontiguousarray(changed), image.affine), file)
        volume["sha256"] = hashlib.sha256(file.read_bytes()).hexdigest()
    path.write_text(json.dumps(study))


def renamed(question: dict[str, Any], name: str, shown: str, of: str | None = None) -> dict[str, Any]:
    own = {"qa_id": f"{name}-{question['qa_id']}", "study_id": f"{of or name}-{shown}"}
    parent = question.get("parent")
    return question | own | ({"parent": f"{name}-{parent}"} if isinstance(parent, str) else {})


def score(answers: dict[str, bool], subtasks: tuple[str, ...] = ()) -> float:
    chosen = [hit for name, hit in answers.items() if not subtasks or name.rsplit("-", 1)[-1] in subtasks]
    assert chosen
    return 100 * sum(chosen) / len(chosen)


def test_unbroken_it_reads(right: dict[str, dict[str, bool]]) -> None:
    assert score(right["untouched"]) > 65
