"""The real studies that stand beside the repository, where they do."""

from pathlib import Path

import numpy as np
import pytest

from cardiolens.config.dataset import Windows
from cardiolens.study.group import displayed_volumes
from cardiolens.study.manifest import read_study

CMR = Path(__file__).parents[3].parent / "shared" / "cmr"
PCT = (1.0, 99.0)
WINDOWS = Windows(pct=PCT)
HEARTS = {  # rows and columns around the left ventricle, as displayed
    "scd-0000101": (slice(70, 170), slice(70, 170)),
    "scd-0000301": (slice(70, 170), slice(80, 180)),
}

pytestmark = pytest.mark.skipif(
    not CMR.is_dir(), reason=f"no real studies beside the repository ({CMR.name})"
)


def displayed(study_id):
    (found,) = displayed_volumes(read_study(CMR / "studies" / study_id), WINDOWS)
    return found


def blood(found, heart):
    """Pixels of blood around the left ventricle, by slice rank and phase.

    Blood is what is brighter than half-way from dark to bright in its slice: coils light up the apex.
    """
    row = found.row
    frames = found.frames.reshape(row["n_slices"], row["n_phases"], row["height"], row["width"])[:, :, *heart]
    threshold = np.percentile(frames, (10, 99), axis=(1, 2, 3)).mean(axis=0)
    return (frames > threshold[:, None, None, None]).sum(axis=(2, 3))


@pytest.mark.parametrize(
    ("study_id", "structure"),
    [
        ("scd-0000101", ("cine_sax", 12, 20, 256, 256, 0, 6)),
        ("scd-0000301", ("cine_sax", 10, 20, 256, 256, 19, 6)),
        ("swine-e774", ("cine_4ch", 14, 20, 256, 256, 0, 7)),
        ("swine-lge", ("lge_sax", 20, 1, 448, 336, 0, 0)),
    ],
)
def test_every_study_is_prepared_and_only_animals_are_not_checked(study_id, structure):
    found = displayed(study_id)
    names = ("volume_id", "n_slices", "n_phases", "height", "width", "ed_phase", "es_phase")
    assert tuple(found.row[name] for name in names) == structure
    assert len(found.frames) == structure[1] * structure[2]
    unchecked = [warning for warning in found.warnings if "display_transform was not checked" in warning]
    assert (len(unchecked), len(found.warnings)) == ((1, 1) if "swine" in study_id else (0, 0))


@pytest.mark.parametrize("study_id", HEARTS)
def test_the_cavity_is_large_at_end_diastole_small_at_end_systole_and_tapers_to_the_apex(study_id):
    found = displayed(study_id)
    counts = blood(found, HEARTS[study_id])
    middle = counts[2:7].sum(axis=0)
    ed, es = found.row["ed_phase"], found.row["es_phase"]
    assert middle[ed] > 0.97 * middle.max()
    assert min((ed - middle.argmax()) % 20, (middle.argmax() - ed) % 20) <= 2
    assert middle[es] < 0.85 * middle[ed]
    assert counts[:3, ed].sum() > 1.5 * counts[-3:, ed].sum()  # stored from the apex, ranked from the base
