"""Quantities of phantoms: the numbers agree with the masks, and a cine may begin anywhere in the cycle."""

import json

import numpy as np
import pytest

from cardiolens.config.dataset import PhantomSpec
from cardiolens.phantom import codes
from cardiolens.phantom.phantom_cohort import write_study
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.study.nifti import parse_header, read_file, voxels

CAVITY = [codes.LV_BLOOD, codes.PAPILLARY]


@pytest.fixture(scope="module", params=["from_diastole", "drawn_cycle"])
def made(request, tmp_path_factory):
    """Volume of the cavity by phase, by its masks; the volume's record; the answers."""
    folder = tmp_path_factory.mktemp(request.param)
    also = {"masks", request.param} - {"from_diastole"}
    spec = PhantomSpec(n_sampled=1, also=tuple(also))
    records = write_study("PH-0001", spec, folder, load_catalogue("numbers-1"))
    entries = json.loads((folder / "PH-0001" / "study.json").read_text())["volumes"]
    entry = next(entry for entry in entries if entry["volume_id"] == "cine_sax")
    stored = read_file(folder / "PH-0001" / entry["mask"]["path"])
    frames = voxels(stored, parse_header(stored)).reshape(entry["shape"][::-1])  # slice by slice
    areas = np.isin(frames, CAVITY).sum(axis=(1, 2)).reshape(-1, entry["layout"]["n_phases"])
    volumes = areas.sum(axis=0) * np.prod(entry["spacing_mm"]) / 1000
    return request.param, volumes, entry, {row["subtask"]: row["answer"][0] for row in records}


def number(answers, subtask):
    return float(answers[subtask].split()[0])


def test_answers_agree_with_the_masks(made):
    _, volumes, _, answers = made
    assert abs(number(answers, "N04") - 1 - volumes.argmax()) <= 1
    assert abs(number(answers, "N05") - 1 - volumes.argmin()) <= 1
    assert number(answers, "N02") == pytest.approx(volumes.max(), rel=0.1)
    assert number(answers, "N03") == pytest.approx(volumes.min(), rel=0.15)
    assert number(answers, "N01") == pytest.approx(100 * (1 - volumes.min() / volumes.max()), abs=5)


def test_a_drawn_cycle_is_marked_nowhere(made):
    cycle, volumes, entry, answers = made
    if cycle == "drawn_cycle":
        assert (entry["ed_phase"], entry["es_phase"]) == (0, 0)
        assert 1 < number(answers, "N04") < len(volumes)
        assert 1 < number(answers, "N05") < len(volumes)
    else:
        assert number(answers, "N04") == 1
        assert number(answers, "N05") == entry["es_phase"] + 1
