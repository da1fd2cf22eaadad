"""A first pass that was not found stays so until a person marks it; accepting its series does not find it."""

from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from cardiolens.config.curation_specs import IngestSpec
from cardiolens.curation.ingest.decisions import Choice, Ledger
from cardiolens.curation.ingest.import_run import ingest
from cardiolens.study.manifest import read_study
from cardiolens.study.volume_manifest import DisplayTransform
from tests.unit.curation.ingest.exports import NORMAL, PERFUSION, SHORT_AXIS, builds, proposals, series

BEATS = 24
PERFUSED = {"sequence": "perfusion", "view": "sax", "display": DisplayTransform(), "along_normal": True}


def choice(**times: int) -> Choice:
    return Choice(status="confirmed", **PERFUSED, **times)


def export(folder: Path) -> None:
    """Three slices over 24 beats, whose blood brightens and stays bright."""
    rows, columns = np.indices((32, 32)) - 15.5
    blood = np.hypot(rows, columns) < 6
    rise = np.clip(np.arange(BEATS) - 6, 0, 14) * 40
    draw = np.random.default_rng(4)
    frames = draw.integers(90, 110, (3, BEATS, 32, 32)) + blood * rise[:, None, None]
    frames = frames + draw.integers(0, 900, (3, 1, 32, 32))  # anatomy: slices differ more than beats
    corners = np.array([-10.0 * k * NORMAL for k in range(3)])
    told = {"SeriesDescription": "perf", "ImageOrientationPatient": SHORT_AXIS, **PERFUSION}
    series(folder, frames, corners, 700, timed, **told)


def timed(k: int, beat: int) -> dict[str, object]:
    return {"TemporalPositionIdentifier": beat + 1, "AcquisitionTime": f"1000{beat:02d}.{k}"}


@pytest.fixture
def imported(tmp_path):
    export(tmp_path / "export")
    words = {"source": tmp_path / "export", "out": tmp_path / "out", "key": tmp_path / "key"}

    def again(**more):
        ingest(IngestSpec(**words, **more))
        return builds(tmp_path / "out")[0]

    return tmp_path, again


def test_confirming_keeps_the_flag_until_onset_and_peak_are_marked(imported):
    folder, again = imported
    before = again()
    (proposal,) = proposals(folder / "out")
    (flag,) = {"times_by_default"} & set(proposal["flags"])
    ledger = Ledger(folder / "decisions.jsonl")
    ledger.decide(before["study_id"], {proposal["stack"]: choice()})
    assert flag in again(decisions=folder / "decisions.jsonl")["flags"]
    ledger.decide(before["study_id"], {proposal["stack"]: choice(t_on=7, t_peak=12)})
    ledger.close()
    build = again(decisions=folder / "decisions.jsonl")
    assert flag not in build["flags"]
    (study,) = (folder / "out" / "studies").glob("*/study.json")
    (volume,) = read_study(study.parent).manifest.volumes
    assert (volume.t_on, volume.t_peak) == (7, 12)


@pytest.mark.parametrize("times", [{"t_on": 3}, {"t_peak": 3}, {"t_on": 9, "t_peak": 4}])
def test_onset_and_peak_are_one_decision(times):
    with pytest.raises(ValidationError, match="expected both"):
        choice(**times)


def test_a_beat_that_is_not_there_and_a_cine_are_refused():
    def refused(made: Choice) -> str | None:
        return made.refused(24, "", (), is_size_open=False)

    assert refused(choice(t_on=3, t_peak=30)) == "phase"
    assert refused(choice(t_on=3, t_peak=9)) is None
    cine = Choice(status="confirmed", **PERFUSED | {"sequence": "cine"}, t_on=3, t_peak=9)
    assert refused(cine) == "phase"
