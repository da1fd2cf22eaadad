"""Right answers by model and subtask, from a run as one Arrow dataset: `python examples/read_tables.py RUN`.

`python -m cardiolens.export run=RUN format=arrow` makes the dataset first. DuckDB and Polars open the same
folder in the one line that its README.md gives.
"""

import sys
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.dataset as ds


def right_answers(run: Path) -> list[dict[str, object]]:
    """Share of right answers and their number, by model and subtask; what nobody answered is left out."""
    answers = ds.dataset(run / "export" / "dataset" / "answers", partitioning="hive")
    rows = answers.to_table(
        columns=["model", "subtask", "correct"],
        filter=(pc.field("channel") == "answer") & (pc.field("status") == "judged"),
    )
    rows = rows.set_column(2, "right", pc.cast(rows["correct"], "float64"))
    table = rows.group_by(["model", "subtask"]).aggregate([("right", "mean"), ("right", "count")])
    return table.sort_by([("subtask", "ascending"), ("model", "ascending")]).to_pylist()


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        sys.exit(0 if sys.argv[1:2] in (["-h"], ["--help"]) else 2)
    for row in right_answers(Path(sys.argv[1])):
        print(f"{row['subtask']:8} {row['model']:24} {row['right_mean']:.2f} of {row['right_count']}")
