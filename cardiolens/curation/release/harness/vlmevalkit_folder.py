"""A task folder of VLMEvalKit: a table for each split, frames as files, and a class that asks them."""

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from cardiolens.base import disk
from cardiolens.curation.release.harness.handing_out import hand_out, task_name

VLMEVALKIT = "vlmevalkit"  # the folder
WRITTEN_FOR = "e8e78f05"  # the commit of VLMEvalKit whose data sets the class was written for
_COLUMNS = ("index", "qa_id", "category", "image_path", "question", "system", "prompt", "scored_by", "canary")


def write_vlmevalkit(folder: Path, benchmark: str, tables: Mapping[str, Path], canary: str) -> None:
    """Write what goes to LMUData, and the files that go to VLMEvalKit, of Parquet folders by split."""
    names = [f"cardiolens_{task_name(benchmark, split)}" for split in tables]
    for name, (split, table) in zip(names, tables.items(), strict=True):
        images = f"images/{task_name(benchmark, split)}"
        with (
            disk.atomic(folder / "LMUData" / f"{name}.tsv") as temporary,
            disk.open_text(temporary) as file,
        ):
            writer = csv.DictWriter(file, _COLUMNS, delimiter="\t", lineterminator="\n")
            writer.writeheader()
            for index, row in enumerate(_rows(table)):
                writer.writerow(_line(index, row, images))
                _write_frames(folder / "LMUData" / images / row["study_id"], row)
    hand_out(folder, "cardiolens_answers.py", "cardiolens_questions.py")
    disk.write_text(folder / "README.md", _readme(benchmark, names, canary))


def _rows(table: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a folder of Parquet that was written just now."""
    for path in sorted(table.glob("*.parquet")):
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                yield from file.read_row_group(group).to_pylist()


def _line(index: int, row: Mapping[str, Any], images: str) -> dict[str, object]:
    scored_by = {name: row[name] for name in ("answer_type", "options", "answer")}
    paths = [f"{images}/{row['study_id']}/{frame['path']}" for frame in row["frames"]]
    return {
        "index": index,
        "category": row["subtask"],
        "image_path": json.dumps(paths),
        "scored_by": json.dumps(scored_by, ensure_ascii=False),
        **{name: row[name] for name in ("qa_id", "question", "system", "prompt", "canary")},
    }


def _write_frames(folder: Path, row: Mapping[str, Any]) -> None:
    """Write the frames of a row that no row before it showed."""
    for frame in row["frames"]:
        if not (folder / frame["path"]).exists():
            disk.write_draft(folder / frame["path"], frame["bytes"])


def _readme(benchmark: str, names: list[str], canary: str) -> str:
    return f"""# {benchmark} in VLMEvalKit

1. Copy `cardiolens_answers.py` and `cardiolens_questions.py` into `vlmeval/dataset/` of VLMEvalKit.
2. In `vlmeval/dataset/__init__.py` add `from .cardiolens_questions import CardioLensQuestions` to the
   imports, and `CardioLensQuestions` to the list `CUSTOM_DATASET`.
3. Copy what is in `LMUData` into your folder `LMUData`, or set the variable `LMUData` to it.

```
python run.py --data {" ".join(names)} --model ...
```

Written for VLMEvalKit at commit {WRITTEN_FOR}, and never run there with a model. The score is the share of
questions whose reply names exactly the right options, overall and by subtask; no judge is asked.

{canary}
"""
