"""Sweeps in a process of their own, which kills itself at a given moment.

    python tests/unit/killed_sweeps.py <chains or asking> <root> <flush_rows> <moment> <n>

It ends as the n-th request is `asked`, as the n-th part of completions is `writing` and has not its name yet,
or as soon as that part is `written`. The keys of what it asks are in `<root>/asked`. Parts take unequal times
to write, as on a busy disk.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from chain_cohort import Scribe, spec_of
from mumbler import Mumbler, asking_spec
from small_cohort import swept

from cardiolens.base import disk
from cardiolens.inference.engine.ask import Ask, Engine, Pictures, Reply
from cardiolens.storage import schemas, tables

SECONDS = (0.05, 0.0)  # of the writes in turn


def kill(kind: str, root: Path, flush_rows: int, moment: str, at: int) -> list[str]:
    """Sweep until the moment comes; the keys of what was asked."""
    (root / "asked").write_text("")
    command = [sys.executable, __file__, kind, str(root), str(flush_rows), moment, str(at)]
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    ended = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
    return (root / "asked").read_text().split()


def said(root: Path) -> dict[str, str]:
    """Texts of the final completions on disk; none is there twice."""
    folders = (root / "store" / "completions").glob("*")
    rows = [row for folder in folders for row in tables.read(folder, schemas.COMPLETIONS).to_pylist()]
    final = [row for row in rows if row["status"] in schemas.FINAL]
    texts = {row["request_key"]: row["text"] for row in final}
    assert len(texts) == len(final), "nothing is asked twice"
    return texts


class Killed:
    """Counts what happens, and kills the process at its moment."""

    def __init__(self, moment: str, at: int) -> None:
        self._moment, self._at = moment, at
        self._seen = dict.fromkeys(("asked", "writing", "written"), 0)

    def happened(self, moment: str) -> None:
        self._seen[moment] += 1
        if (moment, self._seen[moment]) == (self._moment, self._at):
            os.kill(os.getpid(), signal.SIGKILL)


class Noting(Engine):
    """Reader that notes what another one is asked where a killed process leaves it."""

    def __init__(self, reader: Engine, file: Path, killed: Killed) -> None:
        self._reader, self._file, self._killed = reader, file, killed

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        with self._file.open("a") as noted:
            noted.write(f"{ask.request_key}\n")
        self._killed.happened("asked")
        return await self._reader.answer(ask, pictures)


def kill_writes(killed: Killed) -> None:
    """Let every part of completions be a moment at which the process may end."""
    atomic, turns = disk.atomic, count()

    @contextmanager
    def deadly(path: Path) -> Iterator[Path]:
        if "completions" not in path.parts:
            with atomic(path) as temporary:
                yield temporary
            return
        time.sleep(SECONDS[next(turns) % len(SECONDS)])
        with atomic(path) as temporary:
            yield temporary
            killed.happened("writing")
        killed.happened("written")

    disk.atomic = deadly


def main() -> None:
    kind, root, flush_rows, moment, at = sys.argv[1:]
    killed, place, stream = Killed(moment, int(at)), Path(root), {"flush_rows": int(flush_rows)}
    kill_writes(killed)
    if kind == "chains":
        spec, reader = spec_of(place, stream=stream), Scribe()
    else:
        spec, reader = asking_spec(place, limit=1, stream=stream), Mumbler(prose=16)
    swept(spec, Noting(reader, place / "asked", killed))


if __name__ == "__main__":
    main()
