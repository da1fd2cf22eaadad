"""`python -m cardiolens.export run=outputs/...`: every item as CSV and JSONL, tables as Markdown and LaTeX.

The files go to `export/` in the run's folder. They hold patient ids only with `patient_ids=true`. With
`format=arrow` they are one partitioned dataset of Parquet files instead, with prompts and replies, and with
`format=inspect` logs for Inspect's viewer, one per arm.
"""

import sys

from cardiolens.base.console import say
from cardiolens.base.errors import InputError, RunError
from cardiolens.commands.command import begin, tell
from cardiolens.show.export.dataset_export import write_dataset
from cardiolens.show.export.inspect_logs import write_inspect_logs
from cardiolens.show.export.table_export import PATIENT_IDS, export
from cardiolens.storage.run_word import read_run

_FORMATS = {"format=files": export, "format=arrow": write_dataset, "format=inspect": write_inspect_logs}


def main() -> int:
    begin()
    words = sys.argv[1:]
    try:
        formats = [word for word in words if word.startswith("format=")]
        if strange := [word for word in formats if word not in _FORMATS] or formats[1:]:
            raise InputError(f"{strange[0]}: expected one of {', '.join(_FORMATS)}, once")
        run = read_run([word for word in words if word not in (PATIENT_IDS, *formats)])
        write = _FORMATS[formats[0]] if formats else export
        say(f"export: {write(run, patient_ids=PATIENT_IDS in words)}")
        return 0
    except (InputError, RunError) as error:
        return tell(error)


if __name__ == "__main__":
    sys.exit(main())
