"""A file of questions, read as a sweep reads it."""

from pathlib import Path

import pyarrow as pa

from cardiolens.protocol.tasks.catalogue import Catalogue
from cardiolens.protocol.tasks.questions import given_questions, questions_table


def read_questions(path: Path, catalogue: Catalogue, *, allow_unverified: bool = False) -> pa.Table:
    """Read a file of questions as table `questions`, one row per line."""
    rows = list(given_questions(path, catalogue))
    return questions_table(path, rows, catalogue, {}, allow_unverified=allow_unverified)
