"""A bundle suffices to plan the same requests on another machine, and damage to it is detected."""

import errno
import json
import os
import shutil
from hashlib import sha256
from pathlib import Path

import pytest
import yaml
from cardiolens.commands.bundle import _words_there

from cardiolens.base import disk
from cardiolens.base.errors import InputError, RunError
from cardiolens.config.compose import read_spec
from cardiolens.config.model import ModelSpec
from cardiolens.config.release_identity import ReleaseSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.models.identity import Identity
from cardiolens.inference.plan.plan import plan
from cardiolens.storage import schemas, tables
from cardiolens.study.protocol_folder import DATA
from cardiolens.workflow.steps.check_release import check_release
from cardiolens.workflow.steps.prepare_studies import is_prepared, prepare_sweep
from cardiolens.workflow.upkeep.offline_bundle import INDEX, _gather_model, bundle, differences
from tests.unit.small_cohort import make_cohort, reader, sweep_spec


@pytest.fixture
def made(tmp_path: Path) -> Path:
    make_cohort(tmp_path, 2)
    (tmp_path / "store" / "completions" / "m-0").mkdir(parents=True)
    spec = sweep_spec(tmp_path, reader("uniform", "guess", seed=3))
    folder = tmp_path / "bundle"
    assert bundle(spec, folder, None).words == ("dataset=bundled", "store=store", "model=[guess]")
    return folder


def test_the_same_is_asked_where_a_bundle_is_opened(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = plan(sweep_spec(tmp_path, reader("uniform", "guess", seed=3)))
    monkeypatch.chdir(made)
    words = ["dataset=bundled", "store=store", "model=[guess]", "selector=[clinical]", "budget=[8]"]
    spec = read_spec(words)
    assert is_prepared(spec)
    assert prepare_sweep(spec).unchanged == 2
    there = plan(spec)
    assert {one.model_key for one in there.identities.values()} == {
        one.model_key for one in here.identities.values()
    }
    digests = [
        sorted(tables.read(found.run.requests("guess"), schemas.REQUESTS, ("qa_id",))["qa_id"].to_pylist())
        for found in (here, there)
    ]
    assert digests[0] == digests[1]
    assert not (made / "store" / "completions").exists()


def test_a_bundle_of_a_release_asks_that_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_cohort(tmp_path, 2)
    digest = sha256((tmp_path / "questions.jsonl").read_bytes()).hexdigest()
    release = ReleaseSpec(name="ours", number="1.0", sha256="a" * 64, questions_sha256=digest)
    spec = sweep_spec(tmp_path, reader("uniform", "guess", seed=3))
    named = spec.dataset.model_copy(update={"release": release})
    bundle(spec.model_copy(update={"dataset": named}), tmp_path / "bundle", None)
    monkeypatch.chdir(tmp_path / "bundle")
    opened = read_spec(["dataset=bundled", "store=store", "model=[guess]"])
    assert opened.dataset.release == release
    check_release(opened)
    (tmp_path / "bundle" / "questions.jsonl").chmod(0o600)
    (tmp_path / "bundle" / "questions.jsonl").write_text("")
    with pytest.raises(InputError, match=r"is not the file of ours 1\.0"):
        check_release(opened)


@pytest.fixture
def own(tmp_path: Path) -> dict[str, Path]:
    """A protocol of the user's own, whose prompts differ from the packaged, and templates."""
    make_cohort(tmp_path, 2)
    protocol = shutil.copytree(DATA / "openprotocol-1", tmp_path / "ours")
    manifest = (protocol / "protocol.yaml").read_text()
    (protocol / "protocol.yaml").write_text(manifest.replace("openprotocol-1", "ours-1"))
    questions = (tmp_path / "questions.jsonl").read_text()
    (tmp_path / "questions.jsonl").write_text(questions.replace("openprotocol-1", "ours-1"))
    templates = tmp_path / "wordings"
    templates.mkdir()
    (templates / "system.jinja").write_text("You read hearts.\n")
    return {"protocol": protocol, "templates": templates}


def test_own_folders_are_in_a_bundle_and_need_not_be_there(
    own: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = sweep_spec(tmp_path, reader("uniform", "guess", seed=3), templates=own["templates"])
    dataset = spec.dataset.model_copy(update={"protocol": str(own["protocol"])})
    spec = spec.model_copy(update={"dataset": dataset})
    here = requests_of(spec)
    assert {row["system"] for row in here} == {"You read hearts."}
    folder = tmp_path / "bundle"
    bundled = bundle(spec, folder, None)
    for source in own.values():
        shutil.rmtree(source)
    monkeypatch.chdir(folder)
    opened = read_spec([*bundled.words, "selector=[clinical]", "budget=[8]"])
    assert opened.dataset.protocol == "protocol"
    assert requests_of(opened) == here
    assert list(differences(folder)) == []
    (folder / "protocol" / "protocol.yaml").write_text("")
    (folder / "templates" / "system.jinja").unlink()
    assert set(differences(folder)) == {
        "protocol/protocol.yaml: differs from the bundled file",
        "templates/system.jinja: is missing",
    }


def test_the_readings_of_a_person_are_in_a_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_cohort(tmp_path, 2)
    readings = tmp_path / "reader-1.jsonl"
    first = json.loads((tmp_path / "questions.jsonl").read_text().splitlines()[0])
    readings.write_text(json.dumps({"qa_id": first["qa_id"], "answer": [], "seconds": 1.0}) + "\n")
    spec = sweep_spec(tmp_path, {"name": "guess", "engine": "person", "source": str(readings)})
    here = plan(spec).identities
    bundled = bundle(spec, tmp_path / "bundle", None)
    readings.unlink()
    monkeypatch.chdir(tmp_path / "bundle")
    assert plan(read_spec([*bundled.words, "selector=[clinical]", "budget=[8]"])).identities == here


@pytest.mark.parametrize("inside", [True, False])
def test_an_adapter_is_copied_unless_it_is_among_the_files_of_its_model(tmp_path: Path, inside: bool) -> None:
    files = tmp_path / "files"
    adapter = files / "lora" if inside else tmp_path / "lora"
    files.mkdir()
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text("{}")
    (tmp_path / "out" / "conf" / "model").mkdir(parents=True)
    model = ModelSpec(name="m", source=str(files), adapter="lora" if inside else str(adapter))
    _gather_model(model, Identity("m-0", files, {}, adapter), tmp_path / "out")
    options = yaml.safe_load((tmp_path / "out" / "conf" / "model" / "m.yaml").read_text())["m"]
    assert options["adapter"] == ("lora" if inside else "adapters/m")
    assert (tmp_path / "out" / "adapters" / "m" / "adapter_config.json").exists() != inside


def requests_of(spec: SweepSpec) -> list[dict[str, object]]:
    """What is asked, without the arms, which name paths of their own."""
    planned = plan(spec)
    columns = ("qa_id", "request_key", "system", "prompt")
    rows = tables.read(planned.run.requests("guess"), schemas.REQUESTS, columns).to_pylist()
    return sorted(rows, key=lambda row: row["qa_id"])


def test_a_bundle_lies_in_no_folder_that_it_copies(own: dict[str, Path], tmp_path: Path) -> None:
    spec = sweep_spec(tmp_path, reader("uniform"), templates=own["templates"])
    with pytest.raises(InputError, match=r"lies in templates=.*; give a folder outside it"):
        bundle(spec, own["templates"] / "bundle", None)
    assert list(own["templates"].iterdir()) == [own["templates"] / "system.jinja"]


def test_the_printed_words_name_the_folders_of_the_bundle() -> None:
    bundled = ("dataset=bundled", "templates=templates", "selector.near.encoder=encoders/near")
    given = [
        "+experiment=x",
        "dataset.protocol=/p",
        "templates=/t",
        "+selector.near.encoder=/e",
        "budget=[8]",
    ]
    assert _words_there(bundled, given) == [
        "dataset=bundled",
        "templates=templates",
        "+selector.near.encoder=encoders/near",
        "+experiment=x",
        "budget=[8]",
    ]


def test_a_bundle_that_fails_anywhere_is_not_in_the_way_of_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_cohort(tmp_path, 1)
    spec = sweep_spec(tmp_path, reader("uniform", "guess", seed=3))
    events: list[str] = []
    monkeypatch.setattr(disk, "hooks", [lambda kind, path: events.append(kind)])
    bundle(spec, tmp_path / "whole", None)
    for number in range(1, len(events) + 1):
        left = [number]

        def fail(kind: str, path: Path, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

        monkeypatch.setattr(disk, "hooks", [fail])
        with pytest.raises(RunError, match="cannot be written"):
            bundle(spec, tmp_path / "out", None)
        monkeypatch.setattr(disk, "hooks", [])
        if (tmp_path / "out").exists():  # only the last fsync failed, after the rename
            assert number == len(events)
            continue
        bundle(spec, tmp_path / "out", None)
        assert list(differences(tmp_path / "out")) == []
        disk.remove_tree(tmp_path / "out")


def test_a_bundle_of_open_files_is_closed(made: Path, tmp_path: Path) -> None:
    assert (tmp_path / "questions.jsonl").stat().st_mode & 0o077, "the sources are readable by others"
    assert [path for path in (made, *made.rglob("*")) if path.stat().st_mode & 0o077] == []


def test_damage_is_found(made: Path) -> None:
    assert list(differences(made)) == []
    (made / "questions.jsonl").write_text("")
    next((made / "store" / "frames").iterdir()).unlink()
    found = list(differences(made))
    assert len(found) == 2
    assert any(line.startswith("questions.jsonl: differs from") for line in found)
    assert any(line.endswith("is missing") for line in found)


def test_a_bundle_replaces_nothing(made: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not empty"):
        bundle(sweep_spec(tmp_path, reader("uniform")), made, None)


def test_what_is_no_bundle_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"is not a bundle.*{INDEX}"):
        list(differences(tmp_path))
