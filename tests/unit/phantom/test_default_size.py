"""The large cohorts: rendered in make test-long only."""

import json

import pytest

from cardiolens.config.dataset import PhantomSpec
from cardiolens.phantom.phantom_cohort import make_cohort
from cardiolens.phantom.planes import views
from cardiolens.phantom.roster import catalogue
from tests.unit.questions_file import read_questions

pytestmark = pytest.mark.long

NAMES = (
    "PH-NORMAL",
    "PH-HCM-ASH",
    "PH-HCM-APICAL",
    "PH-DCM",
    "PH-ICM-LAD",
    "PH-ICM-RCA",
    "PH-INFLAM",
    "PH-RCM",
    "PH-ACM",
)


@pytest.mark.parametrize(("size", "phases", "beats", "layers"), [("default", 25, 50, 3), ("ci", 12, 40, 1)])
def test_the_canonical_cohort_renders_in_both_sizes(tmp_path, size, phases, beats, layers):
    make_cohort(PhantomSpec(canonical=NAMES, size=size, masks=True), tmp_path / "cohort")
    assert sorted(path.name for path in (tmp_path / "cohort" / "studies").iterdir()) == sorted(NAMES)
    for name in NAMES:
        manifest = json.loads((tmp_path / "cohort" / "studies" / name / "study.json").read_text())
        layout = {entry["volume_id"]: entry["layout"] for entry in manifest["volumes"]}
        assert set(layout) == set(views())
        assert layout["cine_sax"]["n_slices"] == 10
        assert layout["cine_sax"]["n_phases"] == phases
        assert layout["cine_4ch"] == {"order": "slice_major", "n_slices": layers, "n_phases": phases}
        assert layout["perf_sax"]["n_phases"] == beats
    assert read_questions(tmp_path / "cohort" / "questions.jsonl", catalogue()).num_rows > 9 * 21


def test_two_hundred_studies_render_at_ci_size(tmp_path):
    make_cohort(PhantomSpec(n_sampled=200), tmp_path / "cohort")
    studies = {
        row["study_id"]
        for row in read_questions(tmp_path / "cohort" / "questions.jsonl", catalogue()).to_pylist()
    }
    assert len(studies) == 200
