"""Records of MedThinkVQA as its files have them, for submissions and for judges."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from cardiolens.base.errors import InputError
from cardiolens.benchmarks.benchmark import Source, Split, read_benchmark
from cardiolens.benchmarks.case import Case

LETTERS = ("A", "B", "C", "D", "E")
MOST_IMAGES = 49
PREDICTION = ("prediction", "prediction_rationale", "prediction_twi")  # what a submission adds
MAP = "medthinkvqa"
PROTOCOL = "medthinkvqa-1"


def source_of(root: Path, split: Split = "test") -> Source:
    """Find the file of a split."""
    return Source.of(root, split, MAP)


def field_of(number: int, name: str) -> str:
    """Return the name of a field of an image slot, e.g. image_07_path."""
    return f"image_{number:02d}_{name}"


def records(source: Source) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the records of a file with line or row, without embedded images; InputError for a wrong one."""
    for number, row in enumerate(source.rows(counted=False), start=1):
        if row.error:
            raise InputError(f"{row.place}: {row.error}")
        yield number, row.record


def cases(source: Source, numbers: Collection[int]) -> dict[int, tuple[Mapping[str, Any], Case]]:
    """Return record and case by line or row; InputError for the first of `numbers` that is wrong."""
    read = read_benchmark(source, PROTOCOL)
    for number in sorted(numbers):
        if (failed := f"{source.split}-record-{number:05d}") in read.failed:
            raise InputError(read.failed[failed])
    of_number = {case.number: case for case in read.cases}
    return {number: (record, of_number[number]) for number, record in records(source) if number in numbers}
