"""`python -m cardiolens.export run=outputs/...`: every item as CSV and JSONL, tables as Markdown and LaTeX.

The files go to `export/` in the run's folder. They hold patient ids only with `patient_ids=true`. With
`format=arrow` they are one partitioned dataset of Parquet files instead, prompts and replies included.
"""

import sys

from cardiolens.errors import InputError, RunError
from cardiolens.page.dataset import write_dataset
from cardiolens.page.export import PATIENT_IDS, export
from cardiolens.terminal.console import say
from cardiolens.terminal.verb import begin, read_run, tell

_ARROW = "format=arrow"


def main() -> int:
    begin()
    words = sys.argv[1:]
    try:
        run = read_run([word for word in words if word not in (PATIENT_IDS, _ARROW)])
        write = write_dataset if _ARROW in words else export
        say(f"export: {write(run, patient_ids=PATIENT_IDS in words)}")
        return 0
    except (InputError, RunError) as error:
        return tell(error)


if __name__ == "__main__":
    sys.exit(main())
