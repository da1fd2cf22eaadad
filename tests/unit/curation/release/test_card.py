"""What a card says of whom it shows, of agreement, of volumes held twice and of its limits."""

import json
from pathlib import Path
from typing import Any

import pytest

from cardiolens.curation.release.card import licence_tags
from tests.unit.given_words import release
from tests.unit.study_folders import study, volume, voxels


def make(root: Path, told: list[dict[str, Any]], verification: dict[str, Any]) -> Path:
    """A release of one LGE study a patient, each with one question; `told` is written into its manifest."""
    lines = []
    for number, about in enumerate(told):
        folder = root / "studies" / f"s{number}"
        array = voxels(n_phases=1, seed=number)
        entry = volume(folder, array, "lge_sax", layout={"n_slices": 3, "n_phases": 1})
        study(folder, entry, patient_id=f"p{number}", **about)
        more = {"origin": "report", "verification": {"status": "verified", **verification}}
        lines.append({"study": f"s{number}", "subtask": "L01", "answer": "A", **more})
    (root / "q.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    given = [f"questions={root}/q.jsonl", f"studies={root}/studies", f"out={root}/out", "name=ours"]
    assert release([*given, "licence=internal"]) == 0
    return root / "out"


def test_it_counts_scanners_and_ages_by_cohort(tmp_path: Path) -> None:
    told = [{"vendor": "Siemens", "field_tesla": 1.5, "age_band": "40-49", "sex": "female"}] * 3
    card = (make(tmp_path, [*told, {"vendor": "Philips"}], {}) / "README.md").read_text()
    for line in (
        "| test | vendor | Philips | 1 |",
        "| test | vendor | Siemens | 3 |",
        "| test | field strength | 1.5 T | 3 |",
        "| test | age band | not stated | 1 |",
        "| test | sex | female | 3 |",
        "* The age band of some studies is not stated.",
        "* Not stated for any study: site.",
        "| L01 | Is there late gadolinium enhancement of the myocardium? | studies with lge | 4 | A 4 |",
        "* Options that are the answer of no question: L01 B.",
        "* Fewer than 5 questions each: L01.",
    ):
        assert line in card, line


@pytest.mark.parametrize(
    ("verification", "line"),
    [
        ({"kappa": 0.87321, "kappa_batch": "b01", "readers": 2}, "| 0.87 | 3 |"),
        ({}, "| not measured | 3 |"),
    ],
)
def test_it_says_how_well_readers_agreed_where_that_is_known(
    verification: dict[str, Any], line: str, tmp_path: Path
) -> None:
    folder = make(tmp_path, [{}, {}, {}], verification)
    card = (folder / "README.md").read_text()
    assert line in card
    assert ("Agreement of two readers is not known for 3 of 3 questions" in card) == ("not measured" in line)
    assert "Muster" not in card
    assert licence_tags("CC-BY-4.0") == {"license": "cc-by-4.0"}
    assert licence_tags("CC BY 4.0 of two") == {"license": "other", "license_name": "CC BY 4.0 of two"}
