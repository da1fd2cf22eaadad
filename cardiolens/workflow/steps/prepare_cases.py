"""Prepare the cases of a benchmark in parallel: they become shards, questions and texts for prompts."""

import logging
import time
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from cardiolens.base.errors import InputError, RunError
from cardiolens.base.phrasing import counted
from cardiolens.benchmarks.benchmark import Benchmark, Source, read_benchmark
from cardiolens.benchmarks.case import Case
from cardiolens.benchmarks.case_group import is_current
from cardiolens.benchmarks.case_group import prepare_cases as prepare_group
from cardiolens.config.cluster import ClusterSpec
from cardiolens.config.dataset import DatasetSpec
from cardiolens.protocol.prompts.case_prompts import told_path
from cardiolens.runtime.connect import ray_cluster
from cardiolens.storage import tables
from cardiolens.study.cohort import Cohort, StudyRecord, write_cohort
from cardiolens.study.group import Outcome, current_cohort
from cardiolens.study.shards import holds_part

# Rows from workers to the driver, one per study; `record` is the JSON for cohort.json.
OUTCOMES = pa.schema(
    [
        ("name", pa.string()),
        ("record", pa.string()),
        ("prepared", pa.bool_()),
        ("error", pa.string()),
        ("warnings", pa.list_(pa.string())),
        ("n_bytes", pa.int64()),
        ("fatal", pa.string()),  # a reason to end the run, e.g. a full disk
    ]
)


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


def sorted_pairs(failed: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Return (study, error) pairs, sorted by study."""
    return tuple(sorted(failed.items()))


def counts_of(records: Mapping[str, StudyRecord]) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Return study counts per warning, and per finding in the pixels; no study is named."""
    return (
        Counter(warning for record in records.values() for warning in record.warnings),
        Counter(words for record in records.values() for words in record.found),
    )


def row_of(outcome: Outcome) -> dict[str, Any]:
    """Convert an outcome to a row of OUTCOMES."""
    return {
        "name": outcome.name,
        "record": None if outcome.record is None else outcome.record.model_dump_json(),
        "prepared": outcome.prepared,
        "error": outcome.error,
        "warnings": list(outcome.warnings),
        "n_bytes": outcome.n_bytes,
    }


def outcome_of(row: dict[str, Any]) -> Outcome:
    """Convert a row of OUTCOMES to an outcome; RunError if the row is fatal."""
    if row["fatal"] is not None:
        raise RunError(row["fatal"])
    record = None if row["record"] is None else StudyRecord.model_validate_json(row["record"])
    return Outcome(row["name"], record, row["prepared"], row["error"], tuple(row["warnings"]), row["n_bytes"])


IMAGES_A_PART = 192  # have about 100 MiB compressed

log = logging.getLogger(__name__)


def prepare_cases(dataset: DatasetSpec, store: Path, strict: bool, cluster: ClusterSpec) -> Prepared:
    """Bring shards and questions of a store up to date with a split of downloaded data.

    An unusable case or record is logged and left out; InputError with `strict`, or if none is usable.
    """
    started = time.monotonic()
    _check_place(dataset, store)
    data, current = _read(dataset), current_cohort(store, dataset.display)
    source, usable, failed = data.source, data.cases, dict(data.failed)
    _stop_if(failed, strict=strict or not usable)
    reusable = _unchanged_records(source, usable, current, store)
    touched = [case for case in usable if source.name_of(case.number) not in reusable]
    records, prepared, bytes_read = dict(reusable), 0, 0
    with closing(_outcomes(data, touched, store, strict, cluster)) as outcomes:
        for outcome in outcomes:
            bytes_read += outcome.n_bytes
            if outcome.record is None:
                failed[outcome.name] = outcome.error
                _stop_if(failed, strict=strict)
            else:
                records[outcome.name] = outcome.record
                prepared += 1
    _stop_if(failed, strict=not records)
    data.write(dataset.questions, dataset.protocol)
    cohort = current.model_copy(
        update={"studies": dict(sorted(records.items())), "failed": failed, "tried": {}}
    )
    if cohort != current:
        write_cohort(store, cohort)
    seconds = time.monotonic() - started
    done = Prepared(prepared, len(reusable), sorted_pairs(failed), seconds, bytes_read)
    for name, error in done.failed:
        log.error("%s: %s", name, error)
    for reason, number in data.left_out.items():
        log.warning("%s: %d not asked: %s", dataset.name, number, reason)
    log.info("%s", done)
    return done


def are_prepared(dataset: DatasetSpec, store: Path) -> bool:
    """Return whether `prepare_cases` has nothing to do; reads no image."""
    if not (dataset.questions.is_file() and told_path(dataset.questions).is_file()):
        return False
    data, current = _read(dataset), current_cohort(store, dataset.display)
    kept = _unchanged_records(data.source, data.cases, current, store)
    return len(kept) == len(data.cases) and current.failed == data.failed


def _check_place(dataset: DatasetSpec, store: Path) -> None:
    """Raise InputError if the questions would overwrite a file of the user."""
    if dataset.questions.absolute().parent != store.absolute():
        raise InputError(
            f"dataset.questions={dataset.questions}: the questions of {dataset.map} are made from its "
            f"data, in the store; leave dataset.questions out, or name a file in {store}"
        )


def _read(dataset: DatasetSpec) -> Benchmark:
    """Read the records of a benchmark; InputError if there are none."""
    assert dataset.source is not None, "only a dataset with a source has cases"
    assert dataset.map is not None, "a source has a map"
    source = Source.of(dataset.source.absolute(), dataset.split, dataset.map)
    data = read_benchmark(source, dataset.protocol)
    if not data.cases and not data.failed:
        raise InputError(f"{source.files[0]}: holds no case or question that is asked; download it anew")
    return data


def _stop_if(failed: dict[str, str], *, strict: bool) -> None:
    for error in failed.values() if strict else ():
        raise InputError(error)


def _unchanged_records(
    source: Source, usable: Sequence[Case], current: Cohort, store: Path
) -> dict[str, StudyRecord]:
    """Return the records of unchanged cases whose shards exist."""
    named_cases = [(source.name_of(case.number), case) for case in usable]
    return {
        name: current.studies[name]
        for name, case in named_cases
        if name in current.studies
        and is_current(source, case, current.studies[name])
        and holds_part(store, current.studies[name])
    }


def _outcomes(
    data: Benchmark, touched: Sequence[Case], store: Path, strict: bool, cluster: ClusterSpec
) -> Generator[Outcome, None, None]:
    """Prepare cases with Ray Data, one part per task; yield outcomes as tasks end."""
    if not touched:
        return
    with ray_cluster(cluster):
        import ray

        cpus = int(ray.cluster_resources().get("CPU", 1))
        size = min(_at_once(touched), -(-len(touched) // cpus))
        numbers = [case.number for case in touched]
        groups: list[dict[str, Any]] = [
            {"part": tables.part_name(), "cases": numbers[at : at + size]}
            for at in range(0, len(numbers), size)
        ]
        options = {"source": data.source, "store": store.absolute(), "strict": strict}
        options["by_number"] = ray.put({case.number: case for case in touched})
        dataset = ray.data.from_items(groups, override_num_blocks=len(groups)).map_batches(
            _prepare_batch, batch_size=1, batch_format="pyarrow", fn_kwargs=options
        )
        try:
            yield from map(outcome_of, dataset.iter_rows())
        except ray.exceptions.RayError as error:
            raise RunError(f"preparing stopped ({str(error).splitlines()[0]}); run it again") from error


def _at_once(cases: Sequence[Case]) -> int:
    """Return how many cases a part takes."""
    return max(1, IMAGES_A_PART * len(cases) // sum(len(case.images) for case in cases))


def _prepare_batch(batch: pa.Table, source: Source, store: Path, strict: bool, by_number: Any) -> pa.Table:
    import ray

    every = ray.get(by_number)
    rows: list[dict[str, Any]] = []
    for group in batch.to_pylist():
        cases = [every[number] for number in group["cases"]]
        try:
            outcomes = prepare_group(store, group["part"], source, cases, strict=strict)
        except (RunError, OSError) as error:
            rows.append({"name": "", "fatal": str(error)})
        else:
            rows += map(row_of, outcomes)
    return pa.Table.from_pylist(rows, schema=OUTCOMES)
