"""`python -m cardiolens.export run=outputs/...`: write every item as CSV, and tables for a paper as LaTeX.

The files go to `export/` in the run's folder. They hold patient ids only with `patient_ids=true`.
`format=arrow` writes one partitioned dataset of Parquet files instead, with prompts and replies;
`format=inspect` writes logs for Inspect's viewer, one per arm; `format=figures` a paper's figures as SVG and
PDF, with `runs=[...]` of several runs as one.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from cardiolens.base.console import say
from cardiolens.base.errors import InputError
from cardiolens.commands.command import Action, verb
from cardiolens.show.export.dataset_export import write_dataset
from cardiolens.show.export.figures import write_figures
from cardiolens.show.export.inspect_logs import write_inspect_logs
from cardiolens.show.export.table_export import export
from cardiolens.show.page.page_data import read_facts
from cardiolens.storage.places import RunWords
from cardiolens.workflow.steps.judge_run import joined

_WRITERS: Mapping[str, Callable[..., Path]] = {
    "files": export,
    "arrow": write_dataset,
    "inspect": write_inspect_logs,
}


class Words(RunWords):
    """Words of the command; several runs for figures alone."""

    format: Literal["files", "arrow", "inspect", "figures"] = "files"
    patient_ids: bool = False  # whether patient ids are written


def export_runs(words: Words) -> int:
    """Write what is asked for, and name its folder."""
    runs = words.open()
    if words.format != "figures" and len(runs) > 1:
        raise InputError(f"runs=: format={words.format} is of one run; give run=..., or format=figures")
    run = joined(runs)
    if words.format == "figures":
        folder = write_figures(run, read_facts(run, runs))
    else:
        folder = _WRITERS[words.format](run, patient_ids=words.patient_ids)
    say(f"export: {folder}")
    return 0


main = verb(__name__, __doc__, Action(Words, export_runs))
