"""Identities, report text and keys are planted everywhere, and then searched for in every byte that leaves.

A study_id is a pseudonym: it may stand in local logs, tables and messages. A patient_id may stand in tables
alone. Neither may reach Weights & Biases or a server.
"""

import gzip
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cardiolens.storage import schemas, tables
from tests.ray.processes import printed_by
from tests.ray.test_http import SERVED, in_the_background
from tests.unit.http_server import MODEL, Server
from tests.unit.study_folders import sha256, study, volume, voxels, write_nifti

pytestmark = [pytest.mark.ray, pytest.mark.full]

STUDY, PATIENT, NAME, REPORT_ID = "STUDY-QXZA", "PATIENT-QXZB", "Qxzc^Jane", "REPORT-QXZD"
FOLDER = "FOLDER-QXZL"  # of a study; it often is a name
FINDINGS, IMPRESSION = "Qxze globally thickened.", "Qxzf not excluded."
KEYS = {
    "WANDB_API_KEY": f"qxzg{'0' * 36}",
    "OPENAI_API_KEY": "sk-qxzh",
    "HF_TOKEN": "hf_qxzi",
    "ANTHROPIC_API_KEY": "qxzj",
    "SERVER_KEY": "qxzk",  # the one that the server is meant to see, in one header
}
IDENTITIES = (PATIENT, NAME, REPORT_ID, FINDINGS, IMPRESSION)
SECRETS = (*IDENTITIES, *KEYS.values())
PATIENTS = 6


@dataclass(frozen=True)
class Left:
    """What a sweep of a server and of a reader that knows the truth left behind."""

    run: Path
    store: Path
    ray: Path  # Ray's own session folder
    printed: bytes
    asked: list[tuple[dict[str, str], bytes]]  # headers and body of each HTTP request


def _named_nifti(folder: Path, entry: dict[str, Any]) -> dict[str, Any]:
    """With a name in the two text fields of the header, as exporters write it."""
    path = folder / "cine_sax.nii"
    write_nifti(path, voxels(seed=len(list(folder.parent.iterdir()))))
    whole = bytearray(path.read_bytes())
    for at in (14, 148, 228):  # db_name, descrip, aux_file
        whole[at : at + len(NAME)] = NAME.encode()
    path.write_bytes(whole)
    return entry | {"path": path.name, "sha256": sha256(path)}


def _question(number: int, subtask: str, **changes: Any) -> dict[str, Any]:
    return {
        "schema": "qa-1",
        "qa_id": f"{STUDY}-{number}:{subtask}",
        "study_id": f"{STUDY}-{number}",
        "patient_id": f"{PATIENT}-{number}",
        "tier": 1,
        "subtask": subtask,
        "sequence": "cine",
        "question": "How large is the cavity?",
        "answer_type": "ordinal",
        "origin": "report",
        "protocol": "openprotocol-1",
        "evidence": [FINDINGS],
        "verification": {"status": "verified", "by": NAME},
    } | changes


def _questions(number: int) -> Iterator[dict[str, Any]]:
    options = [
        {"key": key, "text": text} for key, text in zip("ABC", ("Normal", "Mild", "Severe"), strict=True)
    ]
    yield _question(number, "C01", options=options, answer=["AB"[number % 2]])
    reference = {"fields": {"lv_size": "Normal size"}, "findings": FINDINGS, "impression": IMPRESSION}
    yield _question(number, "R-CINE", tier=2, answer_type="report", reference=reference)


def _plant(root: Path) -> None:
    lines = []
    for number in range(PATIENTS):
        folder = root / "studies" / f"{FOLDER}-{number}"
        entry = _named_nifti(folder, volume(folder))
        about = {"patient_id": f"{PATIENT}-{number}", "report_id": f"{REPORT_ID}-{number}"}
        study(
            folder,
            entry,
            study_id=f"{STUDY}-{number}",
            cohort=["full", "public"] if number else ["full"],
            **about,
        )
        lines += [json.dumps(record) for record in _questions(number)]
    broken = root / "studies" / "broken"
    study(broken, volume(broken), patient_id=PATIENT, patient_name=NAME)
    dark = root / "studies" / "dark"
    study(dark, volume(dark, np.zeros((6, 5, 12), np.int16)), study_id=f"{STUDY}-dark", patient_id=PATIENT)
    (root / "questions.jsonl").write_text("\n".join(lines))


def _run(root: Path, module: str, *words: str, expect: int) -> bytes:
    command = [sys.executable, "-m", module, *words]
    return printed_by(command, root, expect, **KEYS, RAY_TMPDIR=str(root / "ray")).encode()


@pytest.fixture(scope="module")
def left() -> Iterator[Left]:
    root = Path(tempfile.mkdtemp(prefix="p", dir="/tmp"))  # Ray's sockets need a short path
    _plant(root)
    (root / "ray").mkdir()
    server = Server()
    with in_the_background(server) as (url,):
        (root / "conf" / "model").mkdir(parents=True)
        more = "api_key_env: SERVER_KEY"
        served = SERVED.format(name="served", url=url, model=MODEL, more=more)
        (root / "conf" / "model" / "served.yaml").write_text(served)
        printed = _run(
            root,
            "cardiolens.sweep",
            *("dataset=real", f"dataset.studies={root}/studies", f"dataset.questions={root}/questions.jsonl"),
            *("model=[served,oracle]", "budget=[4]"),
            *(f"store={root}/store", "statistics.min_n=1", "statistics.resamples=50"),
            expect=1,  # two studies cannot be prepared
        )
    (run,) = (root / "outputs").iterdir()
    printed += _run(root, "cardiolens.judge", f"run={run}", expect=0)
    printed += _run(root, "cardiolens.report", f"run={run}", expect=0)
    yield Left(run, root / "store", root / "ray", printed, server.seen)
    shutil.rmtree(root, ignore_errors=True)


def found(folder: Path, secrets: tuple[str, ...]) -> list[tuple[str, str]]:
    """Every (file, secret) under a folder; gzip is inflated, names of files count as well."""
    hits = []
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    assert files, f"{folder} holds nothing to search"
    for path in files:
        content = path.read_bytes()
        content += gzip.decompress(content) if content.startswith(b"\x1f\x8b") else b""
        content += str(path.relative_to(folder)).encode()
        hits += [(path.name, secret) for secret in secrets if _holds(content, secret)]
    return hits


def _holds(content: bytes, secret: str) -> bool:
    forms = (secret, json.dumps(secret)[1:-1])
    return any(form.lower().encode() in content.lower() for form in forms)


def test_the_plants_were_read(left: Left) -> None:
    questions = tables.read(left.store / "questions", schemas.QUESTIONS).to_pylist()
    assert any(FINDINGS in (row["reference"] or "") for row in questions)
    volumes = tables.read(left.store / "volumes", schemas.VOLUMES)
    assert len(set(volumes["patient_id"].to_pylist())) == PATIENTS
    assert left.printed.count(b"not prepared: ") == 2
    assert len(left.asked) >= 2 * PATIENTS
    assert list(left.ray.rglob("*.log"))
    (oracle,) = (left.store / "completions").glob("oracle-*")
    said = tables.read(oracle, schemas.COMPLETIONS, ["text"])["text"].to_pylist()
    assert any(FINDINGS in text for text in said), "a reader of the truth repeats reports"


def test_weights_and_biases_gets_no_identity_and_no_key(left: Left) -> None:
    assert list((left.run / "wandb").rglob("*.wandb"))
    assert found(left.run / "wandb", (STUDY, *SECRETS)) == []


def test_a_server_gets_no_identity_and_its_own_key_alone(left: Left) -> None:
    for headers, body in left.asked:
        assert headers.pop("Authorization") == f"Bearer {KEYS['SERVER_KEY']}"
        whole = json.dumps(headers).encode() + body
        assert [secret for secret in (STUDY, *SECRETS) if _holds(whole, secret)] == []


def test_what_is_printed_and_logged_names_studies_alone(left: Left) -> None:
    assert [secret for secret in SECRETS if _holds(left.printed, secret)] == []
    log = (left.run / "sweep.log").read_bytes()
    assert [secret for secret in SECRETS if _holds(log, secret)] == []
    assert found(left.ray, SECRETS) == []


def test_the_page_and_the_record_hold_no_patient_and_no_key(left: Left) -> None:
    apart = ("wandb", "requests", "verdicts", "scores", "sweep.log")  # searched by the other tests
    kept = [path for path in left.run.iterdir() if path.name not in apart]
    assert {"manifest.json", "configuration.json", "analyses.json", "viewer"} <= {path.name for path in kept}
    files = [path for path in kept if path.is_file()]
    for path in files:
        assert [secret for secret in SECRETS if _holds(path.read_bytes(), secret)] == [], path
    for folder in set(kept) - set(files):
        assert found(folder, SECRETS) == []


def test_folders_of_prepared_studies_are_named_nowhere(left: Left) -> None:
    assert not _holds(left.printed, FOLDER)
    assert found(left.run, (FOLDER,)) == []
    assert found(left.store, (FOLDER,)) == []
    assert found(left.ray, (FOLDER,)) == []


def test_nothing_of_it_is_open_to_others(left: Left) -> None:
    for folder in (left.run, left.store):
        opened = [path for path in (folder, *folder.rglob("*")) if path.lstat().st_mode & 0o077]
        assert [path for path in opened if not path.is_symlink()] == []


def test_patients_stand_in_tables_of_questions_volumes_and_verdicts_alone(left: Left) -> None:
    for model in (left.run / "requests").iterdir():
        rows = json.dumps(tables.read(model, schemas.REQUESTS).to_pylist()).encode()
        assert [secret for secret in SECRETS if _holds(rows, secret)] == []
    scores = json.dumps(tables.read(left.run / "scores", schemas.SCORES).to_pylist()).encode()
    assert [secret for secret in (STUDY, *SECRETS) if _holds(scores, secret)] == []
    verdicts = json.dumps(tables.read(left.run / "verdicts", schemas.VERDICTS).to_pylist()).encode()
    assert [secret for secret in SECRETS if _holds(verdicts, secret)] == [PATIENT]
    names = schemas.FRAMES.names
    frames = tables.read(left.store / "frames", schemas.FRAMES, [name for name in names if name != "pixels"])
    assert [secret for secret in SECRETS if _holds(json.dumps(frames.to_pylist()).encode(), secret)] == []
