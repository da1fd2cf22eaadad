"""Masks over frames: the right pixels, the right order, the right names; jobs/show_study.py around it."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from study_folders import study, volume, voxels, write_nifti

from cardiolens.config.dataset import Windows
from cardiolens.study.manifest import read_study
from cardiolens.study.overlay import (
    GAP,
    LABEL_HEIGHT,
    LESION_COLOUR,
    colour,
    contact_sheet,
    read_overlay,
    study_sheet,
    visible_values,
)

sys.path.insert(0, str(Path(__file__).parents[3] / "jobs"))
from show_study import main

LABELS = {"0": "background", "7": "myocardium, segment 7", "20": "blood", "107": "lesion, segment 7"}


def masked(folder, labels=LABELS, affine=None, **changes):
    """A study of 3 slices x 4 phases whose mask has value 7 in one corner of one stored frame."""
    mask = np.zeros((6, 5, 12), np.uint8)
    mask[1, 2, 5] = 7
    mask[3:, :, :] = 20
    path = "masks/cine_sax.nii.gz"
    entry = {"mask": {"path": path, "sha256": write_nifti(folder / path, mask, affine)}} | changes
    if labels is not None:
        (folder / "masks" / "labels.json").write_text(json.dumps(labels))
    return study(folder, volume(folder, voxels(), **entry))


def overlay(folder):
    one = read_study(folder)
    return read_overlay(one, one.manifest.volumes[0])


@pytest.mark.parametrize(
    ("changes", "idx", "place"),
    [
        ({}, 5, (1, 2)),
        ({"spatial_order": "apex_to_base"}, 5, (1, 2)),  # the middle of three slices
        ({"display_transform": {"transpose": True, "flip_rows": True, "flip_cols": False}}, 5, (2, 1)),
        ({"layout": {"order": "phase_major", "n_slices": 3, "n_phases": 4}}, 9, (1, 2)),
    ],
)
def test_a_mask_is_turned_and_ordered_as_its_volume(tmp_path, changes, idx, place):
    found = overlay(masked(tmp_path / "S1", **changes))
    height, width = found.mask.displayed(found.mask.grid).shape[2:]
    for frame in range(12):
        picture = found.on(np.full((height, width), 100, np.uint8), frame)
        coloured = {tuple(at) for at in np.argwhere((picture != 100).any(axis=2)).tolist()}
        assert coloured == ({place} if frame == idx else set())
    tint = np.array(colour(7, LABELS["7"]))
    assert (
        found.on(np.full((height, width), 100, np.uint8), idx)[place].tolist()
        == np.rint(50 + tint / 2).astype(int).tolist()
    )


def test_what_a_person_confirmed_of_a_volume_holds_for_its_mask(tmp_path):
    tiny = [0.02, 0.02, 0.1]
    changes = {"affine": np.diag([*tiny, 1]), "spacing_mm": tiny, "confirmed": ["spacing"]}
    assert overlay(masked(tmp_path / "S1", **changes)).names == {7: "myocardium, segment 7"}


def test_without_labels_every_value_but_0_is_drawn(tmp_path):
    assert overlay(masked(tmp_path / "S1", labels=None)).names == {7: "value 7", 20: "value 20"}
    assert visible_values({1: "blood"}, [0, 1]) == {1: "blood"}


def test_segments_have_colours_of_their_own_and_lesions_are_red():
    names = {value: f"myocardium, segment {value}" for value in range(1, 18)}
    tints = {colour(value, name) for value, name in names.items()}
    assert len(tints) == 17
    assert LESION_COLOUR not in tints
    assert colour(107, "lesion, segment 7") == LESION_COLOUR
    assert set(visible_values(names | {107: "lesion, segment 7", 20: "blood"}, [0, 7, 20, 107])) == {7, 107}


def test_the_job_draws_a_study(tmp_path, capsys):
    folder, out = masked(tmp_path / "S1"), tmp_path / "out.png"
    assert main([f"study={folder}", f"out={out}", "phases=2"]) == 0
    with Image.open(out) as picture:
        assert picture.mode == "RGB"
    assert main([f"study={folder}", f"out={out}", "phases=0"]) == 2
    assert "phases: Input should be greater than 0" in capsys.readouterr().err
    assert main([f"study={tmp_path}/none", f"out={out}"]) == 2


def frame(rank, level, size=(10, 20)):
    return f"cine_sax s{rank}", np.full(size, level, np.uint8)


def test_frames_keep_their_order_and_aspect():
    sheet = np.asarray(contact_sheet([frame(0, 50), frame(1, 100), frame(2, 150)], columns=2, tile=40))
    assert sheet.shape == (2 * (40 + LABEL_HEIGHT + GAP) + GAP, 2 * (40 + GAP) + GAP, 3)
    first, second = LABEL_HEIGHT + GAP, 40 + LABEL_HEIGHT + 2 * GAP + LABEL_HEIGHT
    assert (sheet[first : first + 20, GAP : GAP + 40] == 50).all()
    assert (sheet[first + 20 : first + 40, GAP : GAP + 40] == 0).all()
    assert (sheet[first, 40 + 2 * GAP : 80] == 100).all()
    assert (sheet[second, GAP : GAP + 40] == 150).all()


def test_a_study_is_shown_with_a_row_a_slice_and_a_column_a_phase(tmp_path):
    """Two phases are asked for, which are 1 and 3 of four; ED 0 and ES 1 stand in any choice."""
    cine, both = tmp_path / "S1", tmp_path / "S2"
    static = volume(both, voxels(7, 1), "lge_sax", layout={"order": "static"})
    row = 30 + LABEL_HEIGHT + GAP
    for folder, more, columns, rows in ((cine, (), 3, (3,)), (both, (static,), 6, (3, 2))):
        sheet = study_sheet(study(folder, volume(folder), *more), 2, Windows(pct=(1, 99)), tile=30)
        assert sheet.size == (columns * (30 + GAP) + GAP, sum(n * row + GAP for n in rows))
