"""A file of reasoning steps in either form: ours, or that of MedThinkVQA's makers."""

from pathlib import Path

from cardiolens.benchmarks.benchmark import Source
from cardiolens.benchmarks.judges.published_reasoning import STEPS, read_published
from cardiolens.benchmarks.judges.reasoning import Reasoning, lines_of, read_lines
from cardiolens.benchmarks.medthinkvqa import records


def read_reasoning(path: Path, source: Source) -> list[Reasoning]:
    """Read a file of steps; it is theirs if a record has `explanation_steps`."""
    entries = lines_of(path)
    if any(STEPS in entry for _, entry in entries):
        return read_published(entries, source)
    return read_lines(entries, sum(1 for _ in records(source)))
