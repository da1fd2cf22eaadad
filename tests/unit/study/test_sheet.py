import numpy as np
import pytest
from study_folders import study, volume, voxels

from cardiolens.config.dataset import Windows
from cardiolens.study.overlay import GAP, LABEL_HEIGHT, MARK, ShownFrame, contact_sheet, study_sheet


def frame(rank, level, size=(10, 20)):
    return ShownFrame(("cine_sax", rank, 0), np.full(size, level, np.uint8))


def test_frames_keep_their_order_and_aspect():
    sheet = np.asarray(contact_sheet([frame(0, 50), frame(1, 100), frame(2, 150)], columns=2, tile=40))
    assert sheet.shape == (2 * (40 + LABEL_HEIGHT + GAP) + GAP, 2 * (40 + GAP) + GAP, 3)
    first, second = LABEL_HEIGHT + GAP, 40 + LABEL_HEIGHT + 2 * GAP + LABEL_HEIGHT
    assert (sheet[first : first + 20, GAP : GAP + 40] == 50).all()
    assert (sheet[first + 20 : first + 40, GAP : GAP + 40] == 0).all()
    assert (sheet[first, 40 + 2 * GAP : 80] == 100).all()
    assert (sheet[second, GAP : GAP + 40] == 150).all()


def test_only_marked_places_are_boxed():
    sheet = np.asarray(contact_sheet([frame(0, 50), frame(1, 100)], marked={("cine_sax", 1, 0)}, tile=40))
    assert tuple(sheet[LABEL_HEIGHT + GAP, 40 + 2 * GAP]) == MARK
    assert tuple(sheet[LABEL_HEIGHT + GAP, GAP]) == (50, 50, 50)


@pytest.mark.parametrize(("phases", "columns"), [(2, 4), (4, 4)])  # ED 0 and ES 1 stand in any choice
def test_a_study_is_shown_with_a_row_a_slice(tmp_path, phases, columns):
    folder = tmp_path / "S1"
    static = volume(folder, voxels(7, 1), "lge_sax", layout={"order": "static"})
    sheet = study_sheet(study(folder, volume(folder), static), phases, Windows(pct=(1, 99)), tile=30)
    row = 30 + LABEL_HEIGHT + GAP
    assert sheet.size == (max(columns, 6) * (30 + GAP) + GAP, 3 * row + GAP + 2 * row + GAP)
