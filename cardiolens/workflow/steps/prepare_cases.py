"""The cases of a benchmark as studies to prepare: they become shards, questions and texts for prompts."""

import logging
from collections.abc import Container, Iterator
from functools import partial
from pathlib import Path

from cardiolens.base.errors import InputError
from cardiolens.benchmarks.benchmark import Benchmark, Source, read_benchmark
from cardiolens.benchmarks.case_group import prepare_cases, state_of_case
from cardiolens.config.dataset import DatasetSpec
from cardiolens.storage import tables
from cardiolens.workflow.steps.preparation import StudySource, Task, cpus_of_ray

IMAGES_A_PART = 192  # have about 100 MiB compressed

log = logging.getLogger(__name__)


def cases_of(dataset: DatasetSpec, store: Path) -> StudySource:
    """Read the cases of a split of downloaded data; InputError if there are none."""
    if dataset.questions.absolute().parent != store.absolute():
        raise InputError(
            f"dataset.questions={dataset.questions}: the questions of {dataset.map} are made from its "
            f"data, in the store; leave dataset.questions out, or name a file in {store}"
        )
    assert dataset.source is not None, "only a dataset with a source has cases"
    assert dataset.map is not None, "a source has a map"
    source = Source.of(dataset.source.absolute(), dataset.split, dataset.map)
    data = read_benchmark(source, dataset.protocol)
    if not data.cases and not data.failed:
        raise InputError(f"{source.files[0]}: holds no case or question that is asked; download it anew")
    return StudySource(
        states={source.name_of(case.number): state_of_case(source, case) for case in data.cases},
        failed=data.failed,
        tasks=partial(_tasks, data, store.absolute()),
        finish=partial(_write_questions, data, dataset),
    )


def _tasks(data: Benchmark, store: Path, names: Container[str]) -> Iterator[Task]:
    """Prepare cases in groups of about as many images."""
    source = data.source
    touched = [case for case in data.cases if source.name_of(case.number) in names]
    most = max(1, IMAGES_A_PART * len(touched) // sum(len(case.images) for case in touched))
    size = min(most, -(-len(touched) // cpus_of_ray()))
    for at in range(0, len(touched), size):
        yield partial(prepare_cases, store, tables.part_name(), source, touched[at : at + size])


def _write_questions(data: Benchmark, dataset: DatasetSpec) -> None:
    data.write(dataset.questions, dataset.protocol)
    for reason, number in data.left_out.items():
        log.warning("%s: %d not asked: %s", dataset.name, number, reason)
