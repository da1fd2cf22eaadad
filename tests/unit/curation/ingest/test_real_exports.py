"""Real exports that lie beside the repository, where they do: one of Siemens with a wrong name, one of GE."""

import json
from pathlib import Path

import pytest

from cardiolens.config.curation_specs import IngestSpec
from cardiolens.curation.ingest.import_run import ingest
from cardiolens.study.manifest import read_study

DICOM = Path(__file__).parents[4].parent / "shared" / "dicom"

pytestmark = pytest.mark.skipif(
    not DICOM.is_dir(), reason=f"no real exports beside the repository ({DICOM.name})"
)


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    root = tmp_path_factory.mktemp("real")
    ingest(IngestSpec(source=DICOM, out=root / "out", links=root / "links"))
    links = [json.loads(line) for line in (root / "links").read_text().splitlines()]
    ids = {line["patient"]: line["study_id"] for line in links if "patient" in line}
    return root / "out", ids


def test_a_siemens_export_with_a_wrong_name_becomes_four_views(real):
    out, ids = real
    told = json.loads((out / "proposals" / ids["SIEMENS1"] / "proposals.json").read_text())["proposals"]
    found = {tuple(p["series"]): (p["status"], p["view"]) for p in told}
    assert found == {
        (7001, 8001, 9001, 10001, 11001, 12001): ("taken", "sax"),
        (14001,): ("taken", "4ch"),
        (16001,): ("taken", "3ch"),  # its name says 4CH
        (17001,): ("taken", "2ch"),
        (19001,): ("left_out", "other"),  # a two-chamber view of the right ventricle
        (22001,): ("left_out", "other"),
    }
    flags = {tuple(p["series"]): p["flags"] for p in told}
    assert "witnesses_disagree" in flags[16001,]
    manifest = read_study(out / "studies" / ids["SIEMENS1"]).manifest
    short = next(volume for volume in manifest.volumes if volume.view == "sax")
    assert (short.shape[2:], short.spatial_order, short.ed_phase) == ((6, 25), "base_to_apex", 0)
    assert short.es_phase in range(8, 11)


def test_slices_of_a_ge_export_that_lack_a_phase_are_named(real):
    out, ids = real
    (volume,) = read_study(out / "studies" / ids["GE1"]).manifest.volumes
    assert (volume.volume_id, volume.shape[2:]) == ("cine_sax", (4, 2))
    lines = (out / "proposals" / ids["GE1"] / "rejects.jsonl").read_text().splitlines()
    assert [json.loads(line)["reason"] for line in lines] == ["incomplete"] * 2


def test_no_planted_identity_leaves(real):
    out, _ = real
    for path in out.rglob("*"):
        for name in (b"DOE", b"Planted", b"PLANTED", b"SIEMENS1", b"ACC-", b"1.2.826"):
            assert name not in (path.read_bytes() if path.is_file() else path.name.encode()), path
