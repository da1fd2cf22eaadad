"""Cases of a set with options: prepared without Ray, and a sweep of readers on them."""

from pathlib import Path
from typing import Any

from small_cohort import reader

from cardiolens.benchmarks.benchmark import Benchmark, Source, read_benchmark
from cardiolens.benchmarks.case_group import prepare_cases, state_of_case
from cardiolens.config.sweep import SweepSpec, parse
from cardiolens.study.cohort import Cohort, write_cohort


def read_set(folder: Path, columns: str, protocol: str) -> Benchmark:
    """Read a set by the map of a name, or by one in its folder."""
    columns = str(folder / columns) if columns.endswith(".yaml") else columns
    return read_benchmark(Source.of(folder, "test", columns), protocol)


def prepare_set(folder: Path, columns: str, protocol: str) -> Benchmark:
    """Write the store of a set, and its questions there."""
    found = read_set(folder, columns, protocol)
    outcomes = prepare_cases(folder / "store", "part-0.parquet", found.source, found.cases)
    assert not [outcome.error for outcome in outcomes if outcome.error]
    found.write(folder / "store" / "cases.jsonl", protocol)
    records = {outcome.name: outcome.record for outcome in outcomes if outcome.record}
    states = {found.source.name_of(case.number): state_of_case(found.source, case) for case in found.cases}
    assert {name: record.state for name, record in records.items()} == states
    write_cohort(folder / "store", Cohort(window_pct=(1, 99), studies=records, failed={}))
    return found


def set_spec(folder: Path, columns: str, protocol: str, *models: dict[str, Any], **changes: Any) -> SweepSpec:
    """A sweep on a set that was prepared: all images, the standard prompt."""
    name = columns.removesuffix(".yaml")
    dataset = {"name": name, "map": columns, "source": folder, "studies": folder, "protocol": protocol}
    tree: dict[str, Any] = {
        "name": name,
        "dataset": {**dataset, "questions": folder / "store" / "cases.jsonl"},
        "model": models or [reader("oracle"), reader("uniform"), reader("constant", answer="A")],
        "selector": [{"name": "all", "kind": "all"}],
        "budget": [16],
        "prompt": [{"name": "standard", "style": "standard", "max_tokens": 64}],
        "store": folder / "store",
        "outputs": folder / "outputs",
        "statistics": {"min_n": 1, "resamples": 100, "seed": 7},
    }
    return parse(tree | changes)
