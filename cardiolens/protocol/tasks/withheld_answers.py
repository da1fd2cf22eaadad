"""Questions whose answers are withheld: asked here, judged where the answers are."""

import pyarrow as pa
import pyarrow.compute as pc


def is_withheld(questions: pa.Table) -> pa.ChunkedArray:
    """Whether each row of table `questions` has neither an answer nor a reference, as booleans."""
    n_options = pc.fill_null(pc.list_value_length(questions["answer"]), 0)
    return pc.and_(pc.equal(n_options, 0), pc.is_null(questions["reference"]))


def count_withheld(questions: pa.Table) -> int:
    """Number of questions whose answers are withheld."""
    return int(pc.sum(is_withheld(questions)).as_py() or 0)
