"""Progress of each model of a sweep: bars on a terminal, else one line every 30 seconds.

In a SLURM job there is one line when a model begins and one when it is done; `python -m cardiolens.status`
shows the progress.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Column

from cardiolens.base.console import console, say
from cardiolens.base.phases import Listener, Phase
from cardiolens.base.phrasing import counted
from cardiolens.base.sanitize import one_line
from cardiolens.inference.plan.missing import Missing
from cardiolens.inference.stream.execution import Standing, Watch

_PLAIN_SECONDS = 30.0  # between lines if the output is no terminal


@contextmanager
def progress_display() -> Iterator[Watch]:
    """Yield a progress observer: bars on a terminal, lines elsewhere."""
    if not console.is_terminal:
        yield partial(_plain_progress, quiet="SLURM_JOB_ID" in os.environ)
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(20),
        MofNCompleteColumn(),
    )
    # The note wraps; the other columns keep their width.
    note = TextColumn("{task.fields[note]}", markup=False, table_column=Column(ratio=1))
    with Progress(*columns, note, console=console, expand=True) as bars:
        yield partial(_bar_progress, bars)


@contextmanager
def phase_display() -> Iterator[Listener]:
    """Yield a listener to the phases after the last reply: a bar on a terminal, lines elsewhere."""
    if not console.is_terminal:
        yield _PlainPhases().hear
        return
    text = TextColumn("{task.description}", markup=False, table_column=Column(ratio=1))
    with Progress(SpinnerColumn(), text, TimeElapsedColumn(), console=console, transient=True) as bars:
        task = bars.add_task("")
        yield lambda phase: bars.update(task, description=one_line(phase.words))


class _PlainPhases:
    """Says a line every 30 seconds, and when a phase begins if work goes on for so long."""

    def __init__(self) -> None:
        self._began = self._last = time.monotonic()

    def hear(self, phase: Phase) -> None:
        now = time.monotonic()
        is_long = now - self._began >= _PLAIN_SECONDS
        if now - self._last >= _PLAIN_SECONDS or (is_long and not phase.done):
            self._last = now
            say(phase.words)


def _bar_progress(bars: Progress, model: str, missing: Missing) -> Callable[[Standing], None]:
    task = bars.add_task(one_line(model), total=missing.unique, completed=missing.done, note="starting")
    return lambda standing: bars.update(task, completed=standing.done, note=standing.note)


def _plain_progress(model: str, missing: Missing, *, quiet: bool) -> Callable[[Standing], None]:
    last_time = time.monotonic()
    say(f"{model}: {counted(missing.left, 'request')} to execute, {missing.done} of {missing.unique} reused")

    def report(standing: Standing) -> None:
        nonlocal last_time
        late = not quiet and time.monotonic() - last_time >= _PLAIN_SECONDS
        if late or standing.executed == missing.left:
            last_time = time.monotonic()
            say(f"{model}: {standing.done:,} of {standing.unique:,} requests, {standing.note}")

    return report
