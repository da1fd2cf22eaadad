"""A fault at every change of the disk, in every verb that writes: kill, torn append, full disk, one failure.

    python bench/faults.py [VERB ...] [--kind=kill,torn,full,once] [--step=1]

A verb runs once undisturbed, which counts its changes of the disk (events of `cardiolens/base/disk.py`).
Then, for each event and each kind of fault, it runs in a fresh folder and meets the fault there, and the same
command runs again undisturbed. After it, everything must be equal to the undisturbed run, nothing that was
acknowledged may be lost, nothing may stand twice, and no process may be left after five seconds. The message
of a run that fails is one line, without a traceback. `--step=2` tries every second event.

Ray's workers are replaced by loops of the same process (`at_every_write/one_process.py`), so that every event
has a number; `bench/soak.py` kills processes of real clusters at random.
"""

import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from at_every_write.faulted_process import KINDS, Ended, Fault, Kind, adopt_orphans, run_in_fork
from at_every_write.server import AnsweringServer
from at_every_write.verb import State, Verb, rows_of, state_of, unequal
from at_every_write.verbs import base, verbs

_EXCERPT = 300


@dataclass(slots=True)
class Tally:
    """Counts of one verb over all of its faults."""

    events: int = 0
    faults: int = 0
    unequal: int = 0
    lost: int = 0
    twice: int = 0
    tracebacks: int = 0
    orphans: int = 0
    seconds: float = 0.0
    examples: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> int:
        return self.unequal + self.lost + self.twice + self.tracebacks + self.orphans

    def __str__(self) -> str:
        return (
            f"{self.events:4} events {self.faults:5} faults: unequal {self.unequal}, lost {self.lost}, "
            f"twice {self.twice}, tracebacks {self.tracebacks}, left processes {self.orphans}  "
            f"({self.seconds:.0f} s)"
        )


def main(argv: Sequence[str]) -> int:
    """Run the faults; 0 if nothing was wrong."""
    given = dict(word[2:].split("=", 1) for word in argv if word.startswith("--") and "=" in word)
    wanted = [word for word in argv if not word.startswith("--")]
    kinds = [kind for kind in KINDS if kind in given.get("kind", ",".join(KINDS)).split(",")]
    adopt_orphans()
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    server = AnsweringServer()
    total = Tally()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        _make_base(root / "base")
        server.start()
        for verb in verbs(root / "base", server):
            if wanted and verb.name not in wanted:
                continue
            tally = _faulted(verb, root, kinds, int(given.get("step", "1")))
            print(f"{verb.name:14} {tally}", flush=True)
            for example in tally.examples[:8]:
                print(f"    {example}", flush=True)
            for name in ("events", "faults", "unequal", "lost", "twice", "tracebacks", "orphans", "seconds"):
                setattr(total, name, getattr(total, name) + getattr(tally, name))
    print(f"{'all':14} {total}")
    return 1 if total.wrong else 0


def _make_base(place: Path) -> None:
    """Make what the verbs start from."""
    place.mkdir()
    for step in base(place):
        ended = run_in_fork(step, place, Fault())
        assert ended.code == 0, ended.printed


def _faulted(verb: Verb, root: Path, kinds: Sequence[Kind], step: int) -> Tally:
    """Run a verb undisturbed, then with each fault."""
    began, tally = time.monotonic(), Tally()
    place = _fresh(verb, root)
    whole, _ = _run(verb, place, Fault())
    assert whole.code == verb.ends_with, f"{verb.name} ends with {whole.code} undisturbed:\n{whole.printed}"
    before = state_of(place, verb)
    assert before, f"{verb.name}: nothing to compare"
    if verb.asks is not None:
        verb.asks()
    tally.events = len(whole.events)
    for fault in _faults(whole.events, kinds, step):
        tally.faults += 1
        event = whole.events[fault.number - 1]
        for kind, what in _wrong(verb, root, fault, before):
            setattr(tally, kind, getattr(tally, kind) + 1)
            tally.examples.append(f"{fault.kind} at {fault.number} ({event}): {kind}: {what}")
    tally.seconds = time.monotonic() - began
    return tally


def _faults(events: Sequence[str], kinds: Sequence[Kind], step: int) -> Iterator[Fault]:
    for number in range(1, len(events) + 1, step):
        for kind in kinds:
            if kind != "torn" or events[number - 1].startswith("append "):
                yield Fault(kind, number)


def _wrong(verb: Verb, root: Path, fault: Fault, whole: State) -> Iterator[tuple[str, str]]:
    """Have a verb meet a fault, run it again, and yield what is wrong."""
    place = _fresh(verb, root)
    first, kept = _run(verb, place, fault)
    if "Traceback" in first.printed:
        yield "tracebacks", first.printed[-_EXCERPT:].replace("\n", " | ")
    acknowledged = rows_of(place, verb.acknowledged)
    again, kept_again = _run(verb, place, Fault())
    if again.code not in (verb.ends_with, verb.done_before):
        yield "unequal", f"the same command ended with {again.code}: {again.printed[-_EXCERPT:]}"
        return
    if different := unequal(whole, state_of(place, verb)):
        yield "unequal", f"{', '.join(different[:4])} (first run {first.code})"
    if verb.decisions and kept + kept_again > verb.decisions:
        yield "lost", f"{kept} and {kept_again} decisions of {verb.decisions}"
    stored = rows_of(place, verb.acknowledged)
    if gone := acknowledged.keys() - stored.keys():
        yield "lost", f"{len(gone)} rows, e.g. {next(iter(gone))[:80]}"
    if double := [row for row, count in stored.items() if count > 1]:
        yield "twice", f"{len(double)} rows, e.g. {double[0][:80]}"
    if verb.asks is not None and (repeated := sum(count - 1 for count in verb.asks().values())) > (
        verb.asked_twice_at_most
    ):
        yield "twice", f"{repeated} requests asked again"
    if first.orphans or again.orphans:
        yield "orphans", f"{first.orphans} and {again.orphans}"


def _run(verb: Verb, place: Path, fault: Fault) -> tuple[Ended, int]:
    """Run a verb; return how it ended and how many decisions a server acknowledged."""
    kept = Counter[str]()

    def meet(child: int) -> None:
        if verb.meanwhile is not None:
            kept["decisions"] += verb.meanwhile(child, place)

    return run_in_fork(verb.run, place, fault, meet), kept["decisions"]


def _fresh(verb: Verb, root: Path) -> Path:
    """Copy what a verb starts from to a new folder; what it needs first is done once and copied."""
    ready = root / f"ready {verb.name}"
    if not ready.exists():
        ready.mkdir()
        for glob in verb.base:
            for path in (root / "base").glob(glob):
                if path.is_file():
                    target = ready / path.relative_to(root / "base")
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(path, target)
        if verb.made_before is not None:
            ended = run_in_fork(verb.made_before, ready, Fault())
            assert ended.code == 0, ended.printed
    place = root / "place"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(ready, place)
    return place


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
