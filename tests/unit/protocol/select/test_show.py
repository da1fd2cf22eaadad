"""jobs/show_selection.py: records, pictures from pixels, errors that say what is legal."""

import hashlib
import json
import sys
from pathlib import Path

import pytest
from PIL import Image
from study_folders import study, volume, voxels

sys.path.insert(0, str(Path(__file__).parents[4] / "jobs"))
from show_selection import main


def study_folder(folder: Path, **times: int) -> Path:
    """A study of a cine stack and of a perfusion series, whose axes are the scanner's own."""
    volumes = []
    for volume_id, n_slices, n_phases in (("cine_sax", 4, 10), ("perf_sax", 3, 50)):
        entry = volume(
            folder,
            voxels(n_slices, n_phases, (16, 16)),
            volume_id,
            layout={"order": "slice_major", "n_slices": n_slices, "n_phases": n_phases},
        )
        volumes.append(entry | (times if volume_id == "perf_sax" else {}))
    return study(folder, *volumes)


def test_records_of_selections(tmp_path, capsys):
    folder = study_folder(tmp_path / "S-1", t_on=8, t_peak=15)
    words = [
        f"study={folder}",
        "subtask=[P01,L02]",
        "selector=[clinical,random]",
        "budget=[2,8]",
        "format=json",
    ]
    assert main(words) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(r["subtask"], r["selector"], r["seed"], r["K"]) for r in records] == [
        (subtask, selector, seed, budget)
        for subtask in ("P01", "L02")
        for selector, seed in (("clinical", None), ("random", 2026))
        for budget in (2, 8)
    ]
    assert [(f["slice"], f["phase"]) for f in records[0]["frames"]] == [(0, 21), (2, 21)]
    lines = "\n".join(f"{f['volume']}|{f['idx']}" for f in records[1]["frames"])
    assert records[1]["sha256"] == hashlib.sha256(lines.encode()).hexdigest()
    assert {r["skipped"] for r in records[4:]} == {"sequence_missing"}


def test_a_picture_a_subtask(tmp_path, capsys):
    folder = study_folder(tmp_path / "S-1")
    words = [
        f"study={folder}",
        "subtask=[C04,L01]",
        "selector=[clinical]",
        "budget=[4,9]",
        f"out={tmp_path}/out",
    ]
    assert main(words) == 0
    paths = capsys.readouterr().out.split()
    assert [Path(path).name for path in paths] == ["S-1-C04.png", "S-1-L01.png"]
    with Image.open(paths[0]) as picture:
        grid = picture.convert("RGB").crop((12, 50, 12 + 10 * 8, 50 + 4 * 8))
        coloured = [pixel for _, pixel in grid.getcolors(1 << 24) if max(pixel) - min(pixel) > 60]
    assert coloured  # four cells of the first panel's grid


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["study=nowhere"], "study 'nowhere': no study.json in nowhere nor in"),
        (["study=nowhere", "format=xml"], "format: Input should be 'picture' or 'json', got 'xml'"),
    ],
)
def test_what_cannot_be_shown_is_said(words, message, capsys):
    assert main([*words, "subtask=[C04]"]) == 2
    assert message in capsys.readouterr().err
