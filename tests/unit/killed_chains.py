"""A sweep of chains in a process of its own, which kills itself at a given moment.

    python tests/unit/killed_chains.py <root> <flush_rows> <moment> <n>

It ends as the n-th request is `asked`, as the n-th part of completions is `writing` and has not its name yet,
or as soon as that part is `written`. The keys of what it asks are in `<root>/asked`. Parts take unequal times
to write, as on a busy disk.
"""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from chain_cohort import Scribe, spec_of
from small_cohort import swept

from cardiolens.base import disk
from cardiolens.inference.engine.ask import Ask, Pictures, Reply

SECONDS = (0.05, 0.0)  # of the writes in turn


class Killed:
    """Counts what happens, and kills the process at its moment."""

    def __init__(self, moment: str, at: int) -> None:
        self._moment, self._at = moment, at
        self._seen = dict.fromkeys(("asked", "writing", "written"), 0)

    def happened(self, moment: str) -> None:
        self._seen[moment] += 1
        if (moment, self._seen[moment]) == (self._moment, self._at):
            os.kill(os.getpid(), signal.SIGKILL)


class Noting(Scribe):
    """Reader that notes what it is asked where a killed process leaves it."""

    def __init__(self, file: Path, killed: Killed) -> None:
        super().__init__()
        self._file, self._killed = file, killed

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        with self._file.open("a") as noted:
            noted.write(f"{ask.request_key}\n")
        self._killed.happened("asked")
        return await super().answer(ask, pictures)


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
    root, flush_rows, moment, at = sys.argv[1:]
    killed = Killed(moment, int(at))
    kill_writes(killed)
    place = Path(root)
    swept(spec_of(place, stream={"flush_rows": int(flush_rows)}), Noting(place / "asked", killed))


if __name__ == "__main__":
    main()
