"""Rendered phantom studies with masks and folders, prepared without Ray, and a sweep of readers on them."""

from pathlib import Path
from typing import Any

from small_cohort import reader, sweep_spec

from cardiolens.config.dataset import PhantomSpec, Windows
from cardiolens.config.sweep import SweepSpec
from cardiolens.phantom.phantom_cohort import write_study
from cardiolens.protocol.tasks.questions import write_questions
from cardiolens.study.cohort import Cohort, StudyRecord, write_cohort
from cardiolens.study.group import displayed_volumes
from cardiolens.study.manifest import read_study
from cardiolens.study.shards import frames_table, part_writer

SELECTORS = [
    {"name": "clinical", "kind": "clinical"},
    {"name": "random", "kind": "random", "seeds": [2026]},
    {"name": "uniform", "kind": "uniform"},
]


def rendered_cohort(root: Path, *names: str, size: str = "ci") -> Path:
    """Studies below `root`, a store with their shards, and their questions, which name evidence slices."""
    spec = PhantomSpec(canonical=names, size=size, also=("masks",))  # type: ignore[arg-type]
    records = [record for name in names for record in write_study(name, spec, root / "studies")]
    write_questions(root / "questions.jsonl", records)
    with part_writer(root / "store", "part-0.parquet") as writer:
        for name in names:
            for volume in displayed_volumes(read_study(root / "studies" / name), Windows()):
                frames = frames_table(volume.row, volume.frames)
                writer.rows.append(writer.write(volume.row, frames))
    record = StudyRecord(part="part-0.parquet", state="")
    write_cohort(root / "store", Cohort(window_pct=(1, 99), studies=dict.fromkeys(names, record), failed={}))
    return root


def rendered_spec(root: Path, **changes: Any) -> SweepSpec:
    """Two readers that err, every selector at two budgets, on all that `rendered_cohort` made."""
    dataset = {"name": "whole", "studies": root / "studies", "questions": root / "questions.jsonl"}
    tree = {"dataset": dataset, "name": "whole", "selector": SELECTORS, "budget": [4, 8]}
    return sweep_spec(root, reader("noisy", error=0.5), reader("collapse", share=0.8), **(tree | changes))
