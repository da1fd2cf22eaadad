"""What a dataset gives to prepare, the Ray tasks that prepare it, and the outcome."""

import logging
from collections import Counter
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from cardiolens.base.errors import RunError
from cardiolens.base.phrasing import counted
from cardiolens.storage import tables
from cardiolens.study.cohort import Cohort, StudyRecord
from cardiolens.study.group import Outcome
from cardiolens.study.shards import holds_part

log = logging.getLogger(__name__)

Task = Callable[[], Sequence[Outcome] | None]
"""What one Ray task does."""


@dataclass(frozen=True, slots=True)
class StudySource:
    """The studies of a dataset: the state of each, and the errors of those that cannot be read."""

    states: Mapping[str, str]  # by name, of the files that a study is prepared from
    failed: Mapping[str, str]
    size_of: Callable[[str], int]  # of a study, in the unit of `most`
    most: int  # size of the studies of a part
    task_of: Callable[[str, Sequence[str]], Task]  # what prepares the named studies into a part
    finish: Callable[[], None]  # what is done when the cohort is written

    def unchanged(self, current: Cohort, store: Path) -> dict[str, StudyRecord]:
        """Return the records of the studies that are in the store as they are given."""
        return {
            name: record
            for name, record in current.studies.items()
            if self.states.get(name) == record.state and holds_part(store, record)
        }

    def tasks(self, touched: Container[str]) -> Iterator[Task]:
        """Prepare studies in parts, smaller ones where all CPUs would not have work."""
        names = [name for name in self.states if name in touched]
        total = sum(map(self.size_of, names))
        for part in tables.grouped(names, self.size_of, min(self.most, -(-total // cpus_of_ray()))):
            yield self.task_of(tables.part_name(), part)


@dataclass(slots=True)
class Prepared:
    """The outcome of preparing a dataset: records of usable studies, errors of the others."""

    records: dict[str, StudyRecord]
    failed: dict[str, str]
    prepared: int = 0  # of the records, in this invocation
    bytes_read: int = 0
    seconds: float = 0.0

    @property
    def unchanged(self) -> int:
        """The number of usable studies that were prepared before."""
        return len(self.records) - self.prepared

    @property
    def warnings(self) -> Counter[str]:
        """The number of studies by warning."""
        return Counter(warning for record in self.records.values() for warning in record.warnings)

    @property
    def found(self) -> Counter[str]:
        """The number of studies by fact that was read from pixels."""
        return Counter(fact for record in self.records.values() for fact in record.found)

    def take(self, outcomes: Generator[Outcome, None, None]) -> None:
        """Note each outcome as it comes."""
        with closing(outcomes):
            for outcome in outcomes:
                self.bytes_read += outcome.n_bytes
                if outcome.record is None:
                    self.failed[outcome.name] = outcome.error
                    continue
                self.records[outcome.name] = outcome.record
                self.prepared += 1
                for fact in outcome.record.found:
                    log.info("%s: %s", outcome.name, fact)
                for warning in outcome.record.warnings:
                    log.warning("%s: %s", outcome.name, warning)

    def __str__(self) -> str:
        return (
            f"{counted(len(self.records) + len(self.failed), 'study')}: {self.prepared} prepared, "
            f"{self.unchanged} unchanged, {len(self.failed)} failed "
            f"({self.bytes_read / 1e6:.1f} MB read in {self.seconds:.1f} s)"
        )


def outcomes_of(tasks: Iterable[Task]) -> Generator[Outcome, None, None]:
    """Do tasks with Ray, and yield their outcomes as they end."""
    import ray

    do = ray.remote(_do).options(scheduling_strategy="SPREAD")
    waiting = [do.remote(task) for task in tasks]
    try:
        while waiting:
            (ready,), waiting = ray.wait(waiting)
            yield from ray.get(ready)
    except ray.exceptions.RayError as error:
        cause = getattr(error, "cause", None)
        if isinstance(cause, RunError | OSError):  # e.g. a full disk
            raise RunError(str(cause)) from error
        reason = str(error).splitlines()[0]
        raise RunError(f"preparing stopped ({reason}); run it again") from error
    finally:
        for task in waiting:
            ray.cancel(task)


def _do(task: Task) -> Sequence[Outcome]:
    return task() or ()


def cpus_of_ray() -> int:
    """Return the CPUs of the connected cluster."""
    import ray

    return int(ray.cluster_resources().get("CPU", 1))
