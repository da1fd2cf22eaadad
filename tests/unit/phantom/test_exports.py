"""The generators of tests/support: what a report says, and the words of the job."""

import re

import pytest

from cardiolens.phantom.parameters import canonical_values
from cardiolens.phantom.roster import catalogue, study
from cardiolens.protocol.tasks.instantiate import answer
from cardiolens.protocol.tasks.truth import findings
from jobs.make_phantom import main
from tests.support.free_text.free_report import free_report


def test_what_a_report_says_for_certain_is_the_truth_of_the_study():
    for study_id in (*canonical_values(), *(f"PH-{number:04d}" for number in range(1, 41))):
        made = free_report(study(2026, study_id), catalogue())
        found = findings(study(2026, study_id).truth)
        assert all(name in made.text for name in made.truth["identities"])
        for one in (one for one in made.truth["findings"] if one["certainty"] == "certain"):
            subtask = catalogue()[one["subtask"]]
            keys = answer(subtask, found)
            assert one["answer"] == [option.text for option in subtask.options if option.key in keys]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["format=dicom"], "vendor= is not given; give vendor=... "),
        (["vendor=ge"], "vendor=: only for DICOM; add format=dicom, or leave it out"),
        (["format=dicom", "vendor=ge", "habit=nobody"], "is unknown; choose one of"),
        (["format=text", "masks=true"], "masks=: only of images"),
        (["format=acdc", "masks=true"], "masks=: format=acdc has the masks of that set"),
    ],
)
def test_the_job_names_what_is_wrong(words, message, tmp_path, capsys):
    assert main(["dataset=phantom_ci", f"out={tmp_path / 'cohort'}", *words]) == 2
    assert re.search(message, capsys.readouterr().err)
    assert not (tmp_path / "cohort").exists()
