"""Contents, verification and upkeep of a store: files in use are never deleted, results never change."""

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch

import pytest

from cardiolens.base.errors import InputError
from cardiolens.commands import store as store_command
from cardiolens.storage import schemas, tables
from cardiolens.storage.places import Store
from cardiolens.study.shards import FRAMES_FOLDER, read_volumes
from cardiolens.workflow.upkeep import PART_ROWS, compact, problems, removable

KEY = "tiny-0123"
WHEN = datetime(2026, 11, 22, tzinfo=UTC)


def main(words: list[str]) -> int:
    """What the command does with these words."""
    with patch.object(sys, "argv", ["store", *words]):
        return store_command.main()


@pytest.fixture
def store(prepared_phantom: Path, tmp_path: Path) -> Store:
    shutil.copytree(prepared_phantom / "store", tmp_path / "store")
    return Store(tmp_path / "store")


def completion(number: int, **changed: object) -> dict[str, object]:
    return {
        "request_key": f"{number:032x}",
        "text": "ANSWER: A",
        "status": "ok",
        "attempt": 1,
        "written_at": WHEN,
    } | changed


def write(store: Store, *parts: list[dict[str, object]]) -> None:
    for rows in parts:
        tables.write_part(
            store.completions(KEY), tables.from_rows(rows, schemas.COMPLETIONS), schemas.COMPLETIONS
        )


def aged(path: Path) -> Path:
    past = time.time() - 2 * 86400
    os.utime(path, (past, past))
    return path


def test_ls_counts_what_there_is(store: Store, capsys: pytest.CaptureFixture[str]):
    write(store, [completion(1), completion(2)], [completion(3)])
    (store.completions(KEY) / "part-broken.parquet").write_bytes(b"PAR1")
    assert main(["ls", f"store={store.root}"]) == 0
    said = capsys.readouterr().out
    cells = [re.findall(r"[^\s│]+", line) for line in said.splitlines()]
    assert [line[:3] + line[-1:] for line in cells if f"completions/{KEY}" in line] == [
        [f"completions/{KEY}", "3", "3", "1"]
    ]
    assert any(line[:2] == ["frames", "1"] for line in cells)
    assert "1 study prepared, 0 failed" in said


def test_a_whole_store_is_said_to_be_whole(store: Store, capsys: pytest.CaptureFixture[str]):
    write(store, [completion(1)])
    assert main(["verify", f"store={store.root}"]) == 0
    assert "whole" in capsys.readouterr().out


def test_verify_names_a_changed_pixel_a_cut_part_and_a_missing_one(store: Store):
    (part,) = tables.parts(store.root / FRAMES_FOLDER)
    frames = tables.read_part(part, schemas.FRAMES)
    rows = frames.to_pylist()
    rows[5]["pixels"] = bytes([rows[5]["pixels"][0] ^ 1]) + rows[5]["pixels"][1:]
    tables.write_part(part.parent, tables.from_rows(rows, schemas.FRAMES), schemas.FRAMES, part.name)
    write(store, [completion(1)])
    (cut,) = tables.parts(store.completions(KEY))
    cut.write_bytes(cut.read_bytes()[:-9])
    found = list(problems(store))
    place = f"{rows[5]['study_id']} {rows[5]['volume_id']} frame {rows[5]['idx']}: its pixels have changed"
    assert [place in problem for problem in found] == [True, False]
    assert str(cut) in found[1]
    assert "not a whole Parquet file" in found[1]
    part.unlink()
    assert any("PH-NORMAL: its part part-1.parquet is not there" in problem for problem in problems(store))
    assert main(["verify", f"store={store.root}"]) == 1


def test_prune_says_first_and_deletes_only_what_nobody_reads(
    store: Store, capsys: pytest.CaptureFixture[str]
):
    (frames,) = tables.parts(store.root / FRAMES_FOLDER)
    old = aged(Path(shutil.copy(frames, frames.with_name("part-0.parquet"))))
    young = Path(shutil.copy(frames, frames.with_name("part-2.parquet")))  # a writer may still be running
    leftover = store.root / FRAMES_FOLDER / ".part-3.parquet.abcd.tmp"
    leftover.write_bytes(b"half")
    aged(leftover)
    aged(frames)
    assert set(removable(store)) == {old, leftover}
    assert main(["prune", f"store={store.root}"]) == 0
    assert "nothing is deleted yet: add apply=true" in capsys.readouterr().out
    assert old.exists()
    assert main(["prune", f"store={store.root}", "apply=true"]) == 0
    assert (old.exists(), leftover.exists(), young.exists(), frames.exists()) == (False, False, True, True)
    assert read_volumes(store.root).num_rows > 0
    assert removable(store) == {}


def test_prune_takes_completions_only_by_name(store: Store):
    write(store, [completion(1)])
    aged(tables.parts(store.completions(KEY))[0])
    assert removable(store) == {}
    with pytest.raises(InputError, match=rf"'other' has no completions .* choose from {KEY}"):
        removable(store, ["other"])
    assert main(["prune", f"store={store.root}", f"models=[{KEY}]", "apply=true"]) == 0
    assert tables.parts(store.completions(KEY)) == []


def state_of(store: Store) -> tuple[set[str], Counter[str]]:
    """Keys of final completions, and the attempts of failed requests."""
    rows = tables.read(store.completions(KEY), schemas.COMPLETIONS, ("request_key", "status")).to_pylist()
    failed = Counter(row["request_key"] for row in rows if row["status"] not in schemas.FINAL)
    return {row["request_key"] for row in rows if row["status"] in schemas.FINAL}, failed


def test_compacting_keeps_every_row_and_drops_exact_repetitions(store: Store):
    rows = [completion(number) for number in range(40)]
    retried = [completion(7, status="engine_error", attempt=n) for n in (1, 2)]
    write(store, *([row] for row in rows), retried, [rows[3]])
    before = state_of(store)
    (done,) = compact(store)
    assert (done.parts_before, done.parts_after, done.rows, done.repeated) == (42, 1, 42, 1)
    after = tables.read(store.completions(KEY), schemas.COMPLETIONS).to_pylist()
    assert after[:40] == tables.from_rows(rows, schemas.COMPLETIONS).to_pylist()
    assert state_of(store) == before
    (again,) = compact(store)
    assert (again.parts_before, again.parts_after, again.repeated) == (1, 1, 0)


def test_what_a_killed_compaction_left_is_dropped_beside_what_it_was_merged_into(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("cardiolens.workflow.upkeep.PART_ROWS", 60)  # less than both together
    rows = [completion(number) for number in range(38)]
    rows += [completion(7, status="engine_error", attempt=number) for number in (1, 2)]
    write(store, *([row] for row in rows))
    before = state_of(store)
    write(store, rows)
    (done,) = compact(store)
    assert (done.parts_after, done.rows, done.repeated) == (1, 40, 40)
    assert state_of(store) == before


def test_large_parts_are_left_alone(store: Store):
    write(store, [completion(n) for n in range(PART_ROWS)], [completion(-1 & 0xFFFF_FFFF)])
    large = tables.parts(store.completions(KEY))[0]
    (done,) = compact(store)
    assert (done.parts_before, done.parts_after) == (2, 2)
    assert large.exists()


def test_readers_see_all_rows_while_parts_are_compacted(store: Store):
    write(store, *([completion(number)] for number in range(60)))
    seen: list[int] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            seen.append(len(state_of(store)[0]))

    reader = threading.Thread(target=read)
    reader.start()
    while not seen:
        time.sleep(0.001)
    list(compact(store))
    stop.set()
    reader.join()
    assert set(seen) == {60}


def test_two_compactions_at_once_leave_each_row_once(store: Store):
    write(store, *([completion(number)] for number in range(60)))
    with ThreadPoolExecutor(4) as threads:
        done = [one for ended in threads.map(lambda _: list(compact(store)), range(4)) for one in ended]
    assert sorted(one.parts_before for one in done) == [1, 1, 1, 60]
    assert [one.repeated for one in done] == [0] * 4
    rows = tables.read(store.completions(KEY), schemas.COMPLETIONS)
    assert sorted(rows["request_key"].to_pylist()) == [completion(n)["request_key"] for n in range(60)]


def test_a_compaction_waits_for_one_that_runs_and_not_for_one_that_was_killed(store: Store):
    write(store, [completion(1)], [completion(2)])
    lock = store.completions(KEY) / ".compact.lock"
    holds = (
        "import pathlib, sys, time\nfrom cardiolens.base import disk\n"
        "with disk.locked(pathlib.Path(sys.argv[1])):\n print('held', flush=True)\n time.sleep(60)"
    )
    with (
        subprocess.Popen([sys.executable, "-c", holds, str(lock)], stdout=subprocess.PIPE) as holder,
        ThreadPoolExecutor(1) as thread,
    ):
        holder.stdout.readline()
        done = thread.submit(lambda: list(compact(store)))
        with pytest.raises(TimeoutError):
            done.result(timeout=0.5)
        assert len(tables.parts(store.completions(KEY))) == 2
        holder.kill()
        (compaction,) = done.result(timeout=300)
    assert (compaction.parts_before, compaction.parts_after) == (2, 1)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no action: give one of ls, verify, prune, compact"),
        (["ls", "store=nowhere"], "store=nowhere: is not a store"),
    ],
)
def test_wrong_words_are_refused(words: list[str], message: str, capsys: pytest.CaptureFixture[str]):
    assert main(words) == 2
    assert message in capsys.readouterr().err
