"""Reports with their studies on disk, and the halves of sentences with truths."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

VIEWS = {"cine_sax": "cine", "lge_sax": "lge", "perf_sax": "perfusion", "t2_sax": "t2"}


def content_of(name: str) -> Any:
    """The content of a file here, such as the sentences and reports of one batch: id, text, truth."""
    return yaml.safe_load((Path(__file__).parent / f"{name}.yaml").read_text("utf-8"))


def write_study(root: Path, study_id: str, **more: Any) -> None:
    """A study without pixels."""
    folder = root / "studies" / study_id
    folder.mkdir(parents=True)
    alike = {"view": "sax", "shape": [4, 4, 3], "layout": {"n_slices": 3, "n_phases": 1}}
    alike |= {"spacing_mm": [1, 1, 8], "sha256": "0" * 64}
    volumes = [
        {"volume_id": view, "sequence": sequence, "path": f"{view}.nii", **alike}
        for view, sequence in VIEWS.items()
    ]
    for view in VIEWS:
        (folder / f"{view}.nii").touch()
    told = {"schema": "study-1", "study_id": study_id, "patient_id": study_id, "volumes": volumes} | more
    (folder / "study.json").write_text(json.dumps(told))


def write_reports(root: Path, texts: Mapping[str, str]) -> list[str]:
    """Reports in a folder, a study for each, and the words of the verb."""
    (root / "reports").mkdir(parents=True)
    for study_id, text in texts.items():
        write_study(root, study_id)
        (root / "reports" / f"{study_id}.txt").write_text(text)
    return [f"reports={root}/reports", f"studies={root}/studies", f"out={root}/out"]


def lines(path: Path) -> list[dict[str, Any]]:
    """Records of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text().splitlines()]
