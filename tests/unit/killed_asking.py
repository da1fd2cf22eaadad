"""A sweep that asks back, in a process of its own that kills itself at a given moment (`killed_chains`)."""

import sys
from pathlib import Path

from killed_chains import Killed, kill_writes
from mumbler import Mumbler, asking_spec
from small_cohort import swept

from cardiolens.inference.engine.ask import Ask, Pictures, Reply


class Noting(Mumbler):
    """Mumbler that notes what it is asked where a killed process leaves it."""

    def __init__(self, file: Path, killed: Killed) -> None:
        super().__init__(prose=16)
        self._file, self._killed = file, killed

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        with self._file.open("a") as noted:
            noted.write(f"{ask.request_key}\n")
        self._killed.happened("asked")
        return await super().answer(ask, pictures)


def main() -> None:
    root, flush_rows, moment, at = sys.argv[1:]
    killed = Killed(moment, int(at))
    kill_writes(killed)
    place = Path(root)
    stream = {"flush_rows": int(flush_rows)}
    swept(asking_spec(place, limit=1, stream=stream), Noting(place / "asked", killed))


if __name__ == "__main__":
    main()
