"""Prepare the cases of a benchmark in parallel: they become shards, questions and texts for prompts."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import TypeAdapter

from cardiolens.base.errors import InputError, RunError
from cardiolens.base.phrasing import counted
from cardiolens.benchmarks.benchmark import Benchmark, Source, read_benchmark
from cardiolens.benchmarks.case import Case
from cardiolens.benchmarks.case_group import prepare_cases as prepare_group
from cardiolens.benchmarks.case_group import state_of_case
from cardiolens.config.cluster import ClusterSpec
from cardiolens.config.dataset import DatasetSpec
from cardiolens.protocol.prompts.case_prompts import told_path
from cardiolens.runtime.connect import ray_cluster
from cardiolens.storage import tables
from cardiolens.study.cohort import Cohort, StudyRecord, write_cohort
from cardiolens.study.group import Outcome, current_cohort
from cardiolens.study.shards import holds_part

IMAGES_A_PART = 192  # have about 100 MiB compressed
_ROWS = pa.schema(
    [("outcome", pa.string()), ("fatal", pa.string())]
)  # JSON; why the run ends, e.g. a full disk
_OUTCOME = TypeAdapter(Outcome)
Group = dict[str, Any]
"""The name of a part, and what is prepared into it."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Prepared:
    """Outcome of preparing a dataset; `failed` has (study, message) pairs."""

    prepared: int
    unchanged: int
    failed: tuple[tuple[str, str], ...]
    seconds: float
    bytes_read: int
    warnings: Mapping[str, int] = field(default_factory=dict)  # number of studies per warning
    found: Mapping[str, int] = field(default_factory=dict)  # studies per fact read from pixels

    def __str__(self) -> str:
        studies = self.prepared + self.unchanged + len(self.failed)
        return (
            f"{counted(studies, 'study')}: {self.prepared} prepared, {self.unchanged} unchanged, "
            f"{len(self.failed)} failed ({self.bytes_read / 1e6:.1f} MB read in {self.seconds:.1f} s)"
        )


@dataclass
class Preparation:
    """Outcomes of studies while they are prepared: records of usable ones, errors of the others."""

    records: dict[str, StudyRecord]
    failed: dict[str, str]
    started: float  # of time.monotonic()
    prepared: int = 0
    bytes_read: int = 0

    def check(self) -> None:
        """Raise InputError for the first failure if no study is usable."""
        for name, error in self.failed.items() if not self.records else ():
            raise InputError(f"{name}: {error}")

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
                for finding in outcome.record.found:
                    log.info("%s: %s", outcome.name, finding)
                for warning in outcome.record.warnings:
                    log.warning("%s: %s", outcome.name, warning)

    def done(self) -> Prepared:
        """Log failures and the sum, and return it."""
        for name, error in sorted(self.failed.items()):
            log.error("%s: %s", name, error)
        unchanged, seconds = len(self.records) - self.prepared, time.monotonic() - self.started
        done = prepared_of(self.records, self.failed, self.prepared, unchanged, seconds, self.bytes_read)
        log.info("%s", done)
        return done


def prepared_of(  # noqa: PLR0917
    records: Mapping[str, StudyRecord],
    failed: Mapping[str, str],
    prepared: int,
    unchanged: int,
    seconds: float = 0.0,
    bytes_read: int = 0,
) -> Prepared:
    """Count studies by warning and by finding in the pixels; no study is named there."""
    warnings = Counter(warning for record in records.values() for warning in record.warnings)
    found = Counter(words for record in records.values() for words in record.found)
    return Prepared(prepared, unchanged, tuple(sorted(failed.items())), seconds, bytes_read, warnings, found)


def outcomes_of(
    groups: Sequence[Group], prepare: Callable[[Group], list[Outcome]]
) -> Generator[Outcome, None, None]:
    """Prepare groups with Ray Data, one part per task; yield outcomes as tasks end."""
    import ray

    rows = ray.data.from_items(list(groups), override_num_blocks=len(groups)).map_batches(
        _prepare_batch, batch_size=1, batch_format="pyarrow", fn_kwargs={"prepare": prepare}
    )
    try:
        for row in rows.iter_rows():
            if row["fatal"] is not None:
                raise RunError(row["fatal"])
            yield _OUTCOME.validate_json(row["outcome"])
    except ray.exceptions.RayError as error:
        raise RunError(f"preparing stopped ({str(error).splitlines()[0]}); run it again") from error


def _prepare_batch(batch: pa.Table, prepare: Callable[[Group], list[Outcome]]) -> pa.Table:
    rows: list[dict[str, Any]] = []
    for group in batch.to_pylist():
        try:
            rows += [{"outcome": _OUTCOME.dump_json(outcome).decode()} for outcome in prepare(group)]
        except (RunError, OSError) as error:
            rows.append({"fatal": str(error)})
    return pa.Table.from_pylist(rows, schema=_ROWS)


def cpus_of_ray() -> int:
    """Return the CPUs of the connected cluster."""
    import ray

    return int(ray.cluster_resources().get("CPU", 1))


def prepare_cases(dataset: DatasetSpec, store: Path, cluster: ClusterSpec) -> Prepared:
    """Bring shards and questions of a store up to date with a split of downloaded data.

    An unusable case or record is logged and left out; InputError if none is usable.
    """
    started = time.monotonic()
    if dataset.questions.absolute().parent != store.absolute():
        raise InputError(
            f"dataset.questions={dataset.questions}: the questions of {dataset.map} are made from its "
            f"data, in the store; leave dataset.questions out, or name a file in {store}"
        )
    data, current = _read(dataset), current_cohort(store, dataset.display)
    records = _unchanged_records(data, current, store)
    preparation = Preparation(records, dict(data.failed), started)
    touched = [case for case in data.cases if data.source.name_of(case.number) not in records]
    if touched:
        with ray_cluster(cluster):
            preparation.take(_outcomes(data, touched, store))
    preparation.check()
    data.write(dataset.questions, dataset.protocol)
    cohort = current.model_copy(
        update={"studies": dict(sorted(records.items())), "failed": preparation.failed, "tried": {}}
    )
    if cohort != current:
        write_cohort(store, cohort)
    for reason, number in data.left_out.items():
        log.warning("%s: %d not asked: %s", dataset.name, number, reason)
    return preparation.done()


def are_prepared(dataset: DatasetSpec, store: Path) -> bool:
    """Return whether `prepare_cases` has nothing to do; reads no image."""
    if not (dataset.questions.is_file() and told_path(dataset.questions).is_file()):
        return False
    data, current = _read(dataset), current_cohort(store, dataset.display)
    records = _unchanged_records(data, current, store)
    return len(records) == len(data.cases) and current.failed == data.failed


def _read(dataset: DatasetSpec) -> Benchmark:
    """Read the records of a benchmark; InputError if there are none."""
    assert dataset.source is not None, "only a dataset with a source has cases"
    assert dataset.map is not None, "a source has a map"
    source = Source.of(dataset.source.absolute(), dataset.split, dataset.map)
    data = read_benchmark(source, dataset.protocol)
    if not data.cases and not data.failed:
        raise InputError(f"{source.files[0]}: holds no case or question that is asked; download it anew")
    return data


def _unchanged_records(data: Benchmark, current: Cohort, store: Path) -> dict[str, StudyRecord]:
    """Return the records of unchanged cases that have shards."""
    known = [(data.source.name_of(case.number), case) for case in data.cases]
    records = [(name, case, current.studies[name]) for name, case in known if name in current.studies]
    return {
        name: record
        for name, case, record in records
        if record.state == state_of_case(data.source, case) and holds_part(store, record)
    }


def _outcomes(data: Benchmark, touched: Sequence[Case], store: Path) -> Generator[Outcome, None, None]:
    """Prepare cases in groups of about as many images."""
    import ray

    most = max(1, IMAGES_A_PART * len(touched) // sum(len(case.images) for case in touched))
    size = min(most, -(-len(touched) // cpus_of_ray()))
    numbers = [case.number for case in touched]
    groups = [
        {"part": tables.part_name(), "cases": numbers[at : at + size]} for at in range(0, len(numbers), size)
    ]
    by_number = ray.put({case.number: case for case in touched})
    prepare = partial(_prepare, store=store.absolute(), source=data.source, by_number=[by_number])
    yield from outcomes_of(groups, prepare)


def _prepare(group: Group, *, store: Path, source: Source, by_number: list[Any]) -> list[Outcome]:
    import ray

    every = ray.get(by_number[0])
    cases = [every[number] for number in group["cases"]]
    return prepare_group(store, group["part"], source, cases)
