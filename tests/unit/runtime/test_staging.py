"""Copies on a node's own disk: whole and as recorded, or not at all and said; what is read then."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cardiolens.base.digest import digest_of_files
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.plan.plan import plan
from cardiolens.runtime.staging import VARIABLE, Needed, nearby, stage
from cardiolens.study.frame_parts import read_frames
from cardiolens.study.shards import read_volumes
from cardiolens.workflow.slurm.stage import needed_by


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    (folder / "inner").mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "inner" / "shard.bin").write_bytes(b"weights")
    return folder


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "staged"))
    return tmp_path / "staged"


NAMES = ("config.json", "inner/shard.bin")


def test_a_copy_is_read_where_there_is_one(weights: Path, root: Path) -> None:
    assert nearby(weights) == weights
    digest = digest_of_files([weights / "config.json"])
    assert "2 files, 0.00 GiB, copied to" in stage(Needed(weights, NAMES, digest), root)
    copy = nearby(weights)
    assert copy.parent == root
    assert {path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file()} == set(NAMES)
    assert (copy / "inner" / "shard.bin").read_bytes() == b"weights"


def test_without_a_place_for_copies_nothing_changes(weights: Path, root: Path, monkeypatch) -> None:
    stage(Needed(weights, NAMES), root)
    monkeypatch.delenv(VARIABLE)
    assert nearby(weights) == weights


def assert_left(said: str, why: str, weights: Path, root: Path) -> None:
    assert said.startswith(f"{weights}: read from where it is: ")
    assert why in said
    assert nearby(weights) == weights
    assert not root.exists() or not list(root.iterdir())


def test_what_does_not_fit_is_left(weights: Path, root: Path) -> None:
    with (weights / "huge").open("wb") as handle:
        os.truncate(handle.fileno(), 8 << 40)  # a hole
    assert_left(stage(Needed(weights, (*NAMES, "huge")), root), "8192.00 GiB do not fit", weights, root)


def test_files_of_another_revision_are_left(weights: Path, root: Path) -> None:
    said = stage(Needed(weights, NAMES, "0" * 32), root)
    assert_left(said, "not of the revision that was planned", weights, root)


def test_a_file_of_the_hub_is_compared_with_its_digest(weights: Path, root: Path) -> None:
    """Its cache links to files that are named by their SHA-256."""
    blob = weights.parent / hashlib.sha256(b"weights").hexdigest()
    (weights / "inner" / "shard.bin").rename(blob)
    (weights / "inner" / "shard.bin").symlink_to(blob)
    assert "copied to" in stage(Needed(weights, NAMES), root)
    assert not (nearby(weights) / "inner" / "shard.bin").is_symlink()
    blob.write_bytes(b"damaged")
    said = stage(Needed(weights, NAMES), root / "again")
    assert "inner/shard.bin arrived damaged" in said
    assert not list((root / "again").iterdir())


def test_a_file_that_is_gone_is_said(weights: Path, root: Path) -> None:
    assert_left(stage(Needed(weights, ("config.json", "gone")), root), "No such file", weights, root)


def test_frames_are_read_from_the_copy(sweep_of: Callable[..., SweepSpec], root: Path) -> None:
    planned = plan(sweep_of("model=[uniform]", "subtask=[C01]", "budget=[4]"))
    (shards,) = needed_by(planned, "uniform")
    stage(shards, root)
    store, volumes = planned.store.root, read_volumes(planned.store.root)
    whole = read_frames(store, volumes, {"cine_sax": {0, 3}})
    (store / shards.names[0]).unlink()
    assert read_frames(nearby(store), volumes, {"cine_sax": {0, 3}}) == whole
