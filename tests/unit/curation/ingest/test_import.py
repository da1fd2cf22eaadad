"""The import as a whole: round trips of the phantom, identities, resuming, real exports."""

import gzip
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cardiolens.base.errors import InputError
from cardiolens.config.command_words import read_words
from cardiolens.config.curation_specs import IngestSpec
from cardiolens.config.dataset import DatasetSpec, Windows
from cardiolens.curation.ingest import import_run
from cardiolens.curation.ingest.import_run import ingest
from cardiolens.study.group import displayed_volumes
from cardiolens.study.manifest import read_study
from cardiolens.study.shards import frames_table
from cardiolens.workflow.steps.prepare_studies import prepare
from tests.unit.curation.ingest.exports import (
    CINE,
    CURRENT,
    IDENTITIES,
    LGE,
    NORMAL,
    PATIENT,
    SHORT_AXIS,
    header,
    healthy,
    proposals,
    save,
    series,
)

PCT = (1.0, 99.0)
WINDOWS = Windows(pct=PCT)


def only_study(out: Path) -> Path:
    (folder,) = (out / "studies").iterdir()
    return folder


def shown(folder: Path) -> dict[str, tuple[list[str], int, int, str]]:
    """Digests of the frames in canonical order as displayed, ED, ES and order by volume."""
    return {
        str(volume.row["volume_id"]): (
            frames_table(volume.row, volume.frames)["digest"].to_pylist(),
            *(
                (volume.row["ed_phase"], volume.row["es_phase"])
                if volume.row["sequence"] == "cine"
                else (0, 0)
            ),
            volume.row["spatial_order"],
        )
        for volume in displayed_volumes(read_study(folder), WINDOWS)
    }


def test_no_identity_is_in_any_byte_that_leaves(capfd, tmp_path):
    healthy(tmp_path / "in")
    links, key = tmp_path / "links", tmp_path / "key"
    ingest(IngestSpec(source=tmp_path / "in", out=tmp_path / "out", key=key, links=links))
    assert [path.stat().st_mode & 0o077 for path in (links, key)] == [0, 0]
    told = capfd.readouterr()
    texts = [told.out.encode(), told.err.encode()]
    for path in (tmp_path / "out").rglob("*"):
        texts.append(str(path.relative_to(tmp_path)).encode())
        if path.is_file():
            content = path.read_bytes()
            texts.append(gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content)
    planted = [*IDENTITIES, "SECRET VENDOR", "in private", CURRENT["study"] + ".", "DOE", "JANE", "IM00001"]
    for text in texts:
        for name in planted:
            for encoding in ("utf-8", "utf-16-le", "utf-16-be"):
                assert name.encode(encoding).lower() not in text.lower(), name
    assert links.read_text().count("MRN-77801") == 1, "the search finds what is there"


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    """A small export and its import."""
    root = tmp_path_factory.mktemp("small")
    healthy(root / "export")
    ingest(IngestSpec(source=root / "export", out=root / "out", key=root / "key"))
    return root


def test_the_same_key_gives_the_same_bytes_and_a_second_run_does_nothing(small, tmp_path, capsys):
    again, spec = tmp_path / "out", {"source": small / "export", "key": small / "key"}
    ingest(IngestSpec(out=again, **spec))
    files = {path.relative_to(again): path.read_bytes() for path in again.rglob("*") if path.is_file()}
    assert files == {path: (small / "out" / path).read_bytes() for path in files}
    stamps = {path: (again / path).stat().st_mtime_ns for path in files if path.name != "rejects.jsonl"}
    ingest(IngestSpec(out=again, **spec))
    assert "(unchanged)" in capsys.readouterr().out
    assert {path: (again / path).stat().st_mtime_ns for path in stamps} == stamps
    assert {path: (again / path).read_bytes() for path in files} == files


@pytest.mark.full
def test_processes_beside_this_one_change_no_byte(tmp_path, monkeypatch):
    healthy(tmp_path / "export")
    healthy(tmp_path / "export", 901, StudyInstanceUID="1.2.3.9", PatientID="another")
    written = {}
    for cores in (1, 2):
        out = tmp_path / f"out{cores}"
        monkeypatch.setattr("os.sched_getaffinity", lambda _, cores=cores: set(range(cores)))
        assert ingest(IngestSpec(source=tmp_path / "export", out=out, key=tmp_path / "key")) == 0
        files = (path for path in sorted(out.rglob("*")) if path.is_file())
        written[cores] = {str(path.relative_to(out)): path.read_bytes() for path in files}
    assert len(written[1]) >= 10
    assert written[1] == written[2]


def test_a_study_whose_volume_was_lost_or_whose_options_changed_is_written_again(small, tmp_path):
    out, spec = tmp_path / "out", {"source": small / "export", "key": small / "key"}
    shutil.copytree(small / "out", out)
    (only_study(out) / "cine_sax.nii").unlink()
    ingest(IngestSpec(out=out, **spec))
    assert (only_study(out) / "cine_sax.nii").is_file()
    ingest(IngestSpec(out=out, cohort=("full",), **spec))
    assert read_study(only_study(out)).manifest.cohort == ("full",)


def test_a_source_of_one_file_is_imported_again_when_the_file_changes(tmp_path, capsys):
    path, spec = tmp_path / "IM1", {"out": tmp_path / "out", "key": tmp_path / "key"}
    for grey in (1, 2):
        pixels = (np.arange(1024, dtype=np.uint16) * grey).tobytes()
        facts = {"ImageOrientationPatient": SHORT_AXIS, "SeriesDescription": "lge_sax", **LGE}
        save(header(SOPInstanceUID="1.2.3.9", PixelData=pixels, **facts), path)
        ingest(IngestSpec(source=path, **spec))
        assert "(unchanged)" not in capsys.readouterr().out
        assert "unreadable" not in (tmp_path / "out" / "rejects.jsonl").read_text()
    ingest(IngestSpec(source=path, **spec))
    assert "(unchanged)" in capsys.readouterr().out


def test_new_words_of_a_hospital_import_its_studies_again(small, tmp_path, capsys, monkeypatch):
    shutil.copytree(small / "out", tmp_path / "out")
    monkeypatch.setattr(import_run, "vocabulary", lambda: {"views": {"sax": "kurzachse"}})
    ingest(IngestSpec(source=small / "export", out=tmp_path / "out", key=small / "key"))
    assert "(unchanged)" not in capsys.readouterr().out


def test_studies_of_another_import_are_counted(small, tmp_path, capsys):
    for number in (1, 2):
        healthy(tmp_path / f"export{number}", PatientID=f"P{number}")
        ingest(IngestSpec(source=tmp_path / f"export{number}", out=tmp_path / "out", key=small / "key"))
    assert "holds 1 study of other imports, which prepare reads too" in capsys.readouterr().out


def test_one_slice_with_a_good_name_does_not_stand_for_a_stack_with_a_wrong_one(tmp_path):
    """As a flow image does that is named as a cine, and whose rows and columns are those of no other."""
    healthy(tmp_path / "export", 14, SeriesDescription="2CH FIESTA")
    rows, columns = np.indices((32, 32)) - 15.5
    radii = [7 * (1 - 0.4 * np.sin(np.pi * phase / 8)) for phase in range(8)]
    alone = np.array([[np.where(np.hypot(rows, columns) < radius, 900, 100) + rows for radius in radii]])
    turned = [*SHORT_AXIS[3:], *SHORT_AXIS[:3]]
    series(
        tmp_path / "export",
        alone,
        np.array([-16.0 * NORMAL]),
        18,
        ImageOrientationPatient=turned,
        SeriesDescription="cine sax",
        **CINE,
    )
    assert ingest(IngestSpec(source=tmp_path / "export", out=tmp_path / "out", key=tmp_path / "key")) == 0
    (volume,) = read_study(only_study(tmp_path / "out")).manifest.volumes
    assert (volume.volume_id, volume.layout.n_slices) == ("cine_sax", 6)


def test_two_patients_in_one_folder_are_two_studies(tmp_path):
    for number in (1, 2):
        study = {"PatientID": f"P{number}", "StudyInstanceUID": f"1.2.{number}"}
        healthy(tmp_path / "one", number, **study)
    for number, path in enumerate(sorted((tmp_path / "one").rglob("IM*"))):
        path.rename(tmp_path / "one" / f"{number * 7919 % 1000:04d}")
    ingest(IngestSpec(source=tmp_path / "one", out=tmp_path / "out"))
    manifests = [read_study(folder).manifest for folder in (tmp_path / "out" / "studies").iterdir()]
    assert len({manifest.patient_id for manifest in manifests}) == 2
    assert {manifest.volumes[0].shape for manifest in manifests} == {(32, 32, 6, 8)}


def test_a_threshold_makes_what_is_unsure_wait(tmp_path):
    healthy(tmp_path / "export", SeriesDescription="LGE 4ch")
    ingest(IngestSpec(source=tmp_path / "export", out=tmp_path / "out"))
    (proposal,) = proposals(tmp_path / "out")
    assert {"witnesses_disagree"} <= set(proposal["flags"])
    assert (proposal["status"], proposal["volume_id"]) == ("taken", "cine_sax")
    ingest(IngestSpec(source=tmp_path / "export", out=tmp_path / "out", threshold=0.99))
    (proposal,) = proposals(tmp_path / "out")
    assert (proposal["status"], proposal["reason"]) == ("waits", "below_threshold")
    assert not list((tmp_path / "out" / "studies").iterdir())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["source=a"], "out= is not given"),
        (["source=a", "out=a/b"], "lie within each other"),
        (["source=a", "out=b", "key=b/key"], "key lies in source or out"),
        (["source=a", "out=b", "links=a/links"], "links lies in source or out"),
        (["source=a", "out=b", "colour=red"], r"unknown key .colour.; expected only .*cohort"),
    ],
)
def test_wrong_words_are_refused(words, message):
    with pytest.raises(InputError, match=message):
        read_words(IngestSpec, words)


@pytest.mark.parametrize("mode", [0o644, 0o601])
def test_a_key_that_others_can_read_is_refused(small, tmp_path, mode):
    key = tmp_path / "key"
    key.write_text("0" * 64 + "\n")
    key.chmod(mode)
    spec = IngestSpec(source=small / "export", out=tmp_path / "out", key=key)
    with pytest.raises(InputError, match=rf"key=\S+: others may read it \(mode {mode:o}\).*run chmod 600"):
        ingest(spec)
    assert not (tmp_path / "out").exists()


@pytest.mark.full
def test_the_verb_ends_without_a_traceback(tmp_path):
    save(header(Modality="CT"), tmp_path / "export" / "IM1")
    command = [sys.executable, "-m", "cardiolens.ingest", f"source={tmp_path}/export", f"out={tmp_path}/out"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: source=")
    assert "no_image" in done.stderr
    assert PATIENT["PatientName"] not in done.stderr


@pytest.mark.parametrize("given", ["", "900/IM00001"])
def test_prepare_names_the_import_for_a_file_or_folder_of_dicom(small, tmp_path, given):
    studies = small / "export" / given
    dataset = DatasetSpec(name="real", studies=studies, questions=tmp_path / "none.jsonl")
    with pytest.raises(InputError, match=r"python -m cardiolens\.ingest"):
        prepare(dataset, tmp_path / "store")
