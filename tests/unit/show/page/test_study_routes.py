"""What the served viewer answers of whole studies: the store's own pixels, and nothing else."""

import io
from pathlib import Path

import numpy as np
import pytest
import small_cohort
from page_run import finished
from PIL import Image
from small_cohort import make_cohort, reader, sweep_spec

from cardiolens.base.errors import InputError
from cardiolens.commands.view import served_of
from cardiolens.show.local_server import Request
from cardiolens.show.page.case_viewer.pictures import BLOCK, StudyPictures, tiled
from cardiolens.show.page.case_viewer.study_layout import study_layout
from cardiolens.show.page.case_viewer.viewer_server import Viewer

LONG = BLOCK + 6  # phases: two pictures


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small_cohort, "VIEWS", {"cine_sax": (3, 6), "cine_4ch": (1, LONG), "lge_sax": (3, 1)})
        return make_cohort(tmp_path_factory.mktemp("routes"), 2)


@pytest.fixture(scope="module")
def viewer(root: Path) -> Viewer:
    return served_of([finished(sweep_spec(root, reader("uniform"), name="routes", subtask=["C12"]))])


def picture(viewer: Viewer, path: str) -> np.ndarray | None:
    reply = viewer.read(Request(path.split("/")))
    return None if reply is None else np.asarray(Image.open(io.BytesIO(reply.body)))


@pytest.mark.parametrize(
    ("volume", "phases", "slices"), [("cine_sax", 6, 3), ("cine_4ch", LONG, 1), ("lge_sax", 1, 3)]
)
def test_every_frame_stands_once_in_a_picture_of_phases(
    viewer: Viewer, volume: str, phases: int, slices: int
) -> None:
    layout = viewer.script("studies/1.js", "")
    assert layout is not None
    for rank in range(slices):
        for phase in range(phases):
            sheet = picture(viewer, f"slices/1/{volume}-{rank}-{phase // BLOCK}.png")
            frame = picture(viewer, f"frames/1/{volume}-{rank * phases + phase}.png")
            assert sheet is not None
            assert frame is not None
            columns = int(layout.split(f'"id":"{volume}"')[1].split('"columns":')[1].split("}")[0])
            n_shown = min(BLOCK, phases - phase // BLOCK * BLOCK)
            assert sheet.shape == (2 * -(-n_shown // columns), 2 * columns), "phases of this slice alone"
            row, column = divmod(phase % BLOCK, columns)
            assert (sheet[2 * row : 2 * row + 2, 2 * column : 2 * column + 2] == frame).all()
            assert frame.tolist() == [[2, 0], [len(volume), rank * phases + phase]]


@pytest.mark.parametrize(
    "path",
    [
        *("slices/0/cine_sax-3-0.png", "slices/0/cine_sax-0-1.png", "slices/0/cine_sax-0.png"),
        *("slices/2/cine_sax-0-0.png", "slices/0/none-0-0.png", "slices/0/cine_sax-0-0", "slices/0/-0-0.png"),
        *("slices/0/cine_sax--1-0.png", f"slices/0/cine_sax-{'9' * 5000}-0.png", "slices/x/cine_sax-0-0.png"),
        *("frames/0/cine_sax-18.png", "masked-slices/0/../cine_sax-0-0.png", "studies/2.js", "studies/x.js"),
        *("sent/0.js", "sent/0/9.js", "sent/999/0.js", "shown/9.js", "shown/0-0-0.js", "studies/0/0.js"),
    ],
)
def test_nothing_else_is_answered(viewer: Viewer, path: str) -> None:
    assert viewer.read(Request(path.split("/"))) is None


def test_pictures_of_several_sizes_and_colours_share_a_sheet() -> None:
    grey, colour = np.full((2, 3), 9, np.uint8), np.full((4, 2, 3), 7, np.uint8)
    sheet = tiled([grey, colour, grey], 2)
    assert sheet.shape == (8, 6, 3)
    assert (sheet[:2, :3] == 9).all()
    assert (sheet[:4, 3:5] == 7).all()
    assert (sheet[4:6, :3] == 9).all()
    assert sheet.sum() == 2 * grey.sum() * 3 + colour.sum()


def test_without_its_folder_a_study_has_no_lines_but_a_reason(viewer: Viewer) -> None:
    layout = viewer.script("studies/0.js", "")
    assert layout is not None
    assert '"lines":{},"levels":{}' in layout
    assert layout.count("the study's folder is not where the run had it") == 3


def test_a_study_that_the_store_no_longer_has_is_refused_in_words(root: Path) -> None:
    pictures = StudyPictures(root / "store", root / "studies", ())
    pictures.volumes = pictures.volumes.slice(0, 0)
    with pytest.raises(InputError, match="PH-0001: the store has no volume of it any more; run the sweep"):
        study_layout(pictures, "PH-0001")


def test_nothing_is_written_beside_the_store(root: Path, viewer: Viewer, tmp_path: Path) -> None:
    before = sorted(path for path in root.rglob("*"))
    picture(viewer, "slices/0/cine_sax-0-0.png")
    viewer.script("sent/0/0.js", "")
    assert sorted(path for path in root.rglob("*")) == before
    assert not list(tmp_path.iterdir())
