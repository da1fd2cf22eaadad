"""Stores and runs that were cut, mixed or changed by hand: shards, completions, requests, manifests."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import refused, verb
from small_cohort import make_cohort, reader, sweep_spec, swept

from cardiolens.inference.plan.plan import plan
from cardiolens.storage import documents
from cardiolens.storage.places import Run
from cardiolens.workflow.steps.conclude import counters, write_manifest
from cardiolens.workflow.steps.judge_run import judge

Break = Callable[[Path], object]
AGAIN = "delete it and prepare again"
CHANGED = "another version of CardioLens wrote it, or it was changed: run the sweep again"
NO_RUN = r"is not the folder of a run \(.*\); give run=outputs/<name>"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store, and the run of a simulated reader on two of its studies."""
    root = make_cohort(tmp_path_factory.mktemp("finished") / "place", 2)
    planned, judged = swept(spec_of(root))
    documents.write_configuration(planned.run, planned.spec)
    counted = counters(planned, {}, judged.replies.counts)
    told = {"seconds": {}, "questions_digest": judged.replies.questions_digest}
    write_manifest(planned, {**counted, **told})
    return root


@pytest.fixture
def place(finished: Path, tmp_path: Path) -> Path:
    """A copy whose run names its own store."""
    shutil.copytree(finished, tmp_path / "place")
    written = run_of(tmp_path / "place") / "configuration.json"
    written.write_text(written.read_text().replace(str(finished), str(tmp_path / "place")))
    return tmp_path / "place"


def spec_of(root: Path, **changes: Any) -> Any:
    return sweep_spec(root, reader("uniform"), **changes)


def run_of(root: Path) -> Path:
    (found,) = (root / "outputs").glob("small-*")
    return found


def part(table: str) -> Callable[[Path], Path]:
    """The one part of a table of the store or the run."""

    def found(root: Path) -> Path:
        (path,) = [*(root / "store").glob(f"{table}/part-*"), *run_of(root).glob(f"{table}/part-*")]
        return path

    return found


def text(name: str, content: bytes) -> Break:
    def written(root: Path) -> None:
        folder = root / "store" if name == "cohort.json" else run_of(root)
        (folder / name).write_bytes(content)

    return written


def edited(name: str, **changes: Any) -> Break:
    def written(root: Path) -> None:
        path = (root / "store" if name == "cohort.json" else run_of(root)) / name
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return written


def cut(table: str) -> Break:
    return lambda root: part(table)(root).write_bytes(part(table)(root).read_bytes()[:-200])


def gone(table: str) -> Break:
    return lambda root: part(table)(root).unlink()


def foreign(table: str) -> Break:
    return lambda root: pq.write_table(pa.table({"a": [1]}), part(table)(root))


def column(table: str, name: str, value: Callable[[Any], Any]) -> Break:
    """A part with the values of one column changed, row group by row group."""

    def changed(rows: pa.Table) -> pa.Table:
        field = rows.schema.field(name)
        values = pa.array([value(old) for old in rows[name].to_pylist()], field.type)
        return rows.set_column(rows.schema.get_field_index(name), field, values)

    return rewritten(table, changed)


def rewritten(table: str, changed: Callable[[pa.Table], pa.Table]) -> Break:
    def write(root: Path) -> None:
        path = part(table)(root)
        with pq.ParquetFile(path) as old:
            groups = [changed(old.read_row_group(at)) for at in range(old.num_row_groups)]
        with pq.ParquetWriter(path, groups[0].schema) as new:
            for group in groups:
                new.write_table(group, row_group_size=max(1, group.num_rows))

    return write


def null(_: object) -> None:
    return None


def flipped(pixels: bytes) -> bytes:
    return bytes([pixels[0] ^ 1]) + pixels[1:]


PLANNED: list[tuple[str, Break, str]] = [  # found when the sweep is planned
    ("cohort broken", text("cohort.json", b"{"), r"is not a cohort-1 file \(Invalid JSON"),
    ("cohort newer", edited("cohort.json", schema="cohort-2"), r"should be 'cohort-1', got 'cohort-2'"),
    ("cohort odd", edited("cohort.json", extra=1), r"unknown key 'extra'; expected only .*schema"),
    ("volumes cut", cut("volumes"), r"part-0\.parquet: not a whole Parquet file"),
    ("volumes foreign", foreign("volumes"), r"not those of table 'volumes' version 1; .*: use a new store"),
    ("study unnamed", column("volumes", "study_id", null), r"holds no volume of study PH-0001"),
    ("row groups mixed", column("volumes", "row_group", lambda at: at ^ 1), r"does not hold the \d+ frames"),
    ("frames cut", cut("frames"), rf"frames/part-0\.parquet: is missing or not whole .*{AGAIN}"),
    ("frames missing", rewritten("frames", lambda t: t.slice(1)), r"does not hold the \d+ frames of"),
]

STREAMED: list[tuple[str, Break, str]] = [  # found when frames are read
    (
        "pixels short",
        column("frames", "pixels", lambda p: p[:-1]),
        r"the pixels of frame 0 of \w+ of PH-0001",
    ),
    ("one bit flipped", column("frames", "pixels", flipped), rf"are not those of its digest; .*{AGAIN}"),
    ("digest of another", column("frames", "digest", lambda _: "0" * 32), r"are not those of its digest"),
]

JUDGED: list[tuple[str, Break, str]] = [  # found when the run is judged
    ("completions cut", cut("completions/*"), r"not a whole Parquet file .*; delete it and run again"),
    ("requests cut", cut("requests/*"), r"requests/uniform/part-00000\.parquet: not a whole Parquet file"),
    ("requests gone", gone("requests/*"), r"requests/uniform: holds no requests; plan the run again"),
    ("arms unknown", column("requests/*", "arm_id", lambda _: "other"), r"requests of arm 'other', which"),
    (
        "options moved",
        column("requests/*", "option_keys", lambda _: ["Q", "Z"]),
        r"\['Q', 'Z'\], its question",
    ),
    ("questions cut", cut("questions"), r"questions/part-.*: not a whole Parquet file"),
    (
        "questions changed",
        column("questions", "answer", lambda _: ["A"]),
        r"have changed since it was judged",
    ),
    ("verdicts cut", cut("verdicts"), r"verdicts/part-.*: not a whole Parquet file"),
    ("manifest gone", lambda root: (run_of(root) / "manifest.json").unlink(), NO_RUN),
    ("manifest broken", text("manifest.json", b"{"), NO_RUN),
    (
        "manifest a list",
        text("manifest.json", b"[]"),
        r"manifest\.json: Input should be a valid dictionary, got",
    ),
    ("manifest newer", edited("manifest.json", schema="manifest-2"), r"'manifest-1', got 'manifest-2'"),
    (
        "manifest no key",
        edited("manifest.json", models={"uniform": {}}),
        r"uniform\.model_key: Field required",
    ),
    ("manifest upwards", edited("manifest.json", models={"u": {"model_key": "../x"}}), r"got '\.\./x'"),
    ("configuration broken", text("configuration.json", b'{"a":'), NO_RUN),
    ("configuration newer", edited("configuration.json", novel=1), rf"unknown key 'novel'; .*{CHANGED}"),
    ("configuration other", edited("configuration.json", budget=[4]), r"requests of arm 'uniform-clinical-8"),
    (
        "store gone",
        edited("configuration.json", store="/nowhere"),
        r"/nowhere: no such folder; .* put it",
    ),
]


def named(rows: list[tuple[str, Break, str]]) -> Any:
    return pytest.mark.parametrize(("spoil", "said"), [row[1:] for row in rows], ids=[row[0] for row in rows])


@named(PLANNED)
def test_shards_that_are_not_what_was_prepared_are_named_by_the_plan(spoil, said, place, capsys):
    spoil(place)
    spec = spec_of(place, outputs=place / "new")
    refused(verb(lambda: plan(spec)), said, capsys, place)


@named(STREAMED)
def test_pixels_that_are_not_those_planned_are_named_when_they_are_read(spoil, said, place, capsys):
    planned = plan(spec_of(place, outputs=place / "new"))
    spoil(place)
    shutil.rmtree(place / "store" / "completions")
    refused(verb(lambda: swept(planned.spec)), said, capsys, place, may_appear=r"new/.*")


@named(JUDGED)
def test_a_run_that_cannot_be_judged_is_named(spoil, said, place, capsys):
    spoil(place)
    refused(verb(lambda: judge(Run(run_of(place)))), said, capsys, place)


@pytest.mark.parametrize("note", [b"", b"{", b"{}", b"[]", b"null", b"\xff", b'{"digest": 1, "parts": []}'])
def test_a_plan_with_a_broken_note_is_made_again(note, place):
    spec = spec_of(place)
    first = plan(spec)
    (noted,) = first.run.root.glob("requests/*/plan.json")
    noted.write_bytes(note)
    assert plan(spec).status_counts == first.status_counts
    assert json.loads(noted.read_text())["parts"]
