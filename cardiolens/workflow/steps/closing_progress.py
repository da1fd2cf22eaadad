"""How far judging, scoring and page-making have come: on the terminal, in the run's log, and for `status`."""

import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from cardiolens.base import disk
from cardiolens.base.phases import Phase, heard_by
from cardiolens.base.untrusted.bounded_files import read_bytes
from cardiolens.show.terminal.bars import phase_display
from cardiolens.storage.places import Run

log = logging.getLogger(__name__)

_SECONDS = 5.0  # between two records of one phase
_LOG_SECONDS = 30.0  # between two lines of the log on one phase


class ClosingRecord(BaseModel):
    """What a run does after its last reply, as its process last wrote it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    words: str
    written: datetime

    def line(self, now: datetime) -> str:
        """The record in words; how old it is tells whether its process still works."""
        age = timedelta(seconds=max(0, round((now - self.written).total_seconds())))
        return f"{self.words} (written {age} ago)"


@contextmanager
def closing_progress(run: Run) -> Iterator[None]:
    """Report every phase of this block of code; the record stays only if the process is killed."""
    written = logged = 0.0
    with phase_display() as show:

        def listen(phase: Phase) -> None:
            nonlocal written, logged
            show(phase)
            now = time.monotonic()
            if not phase.done or now - written >= _SECONDS:
                written = now
                _write(run.closing, phase.words)
            if not phase.done or phase.done == phase.total or now - logged >= _LOG_SECONDS:
                logged = now
                log.info("%s, %.1f s", phase.words, phase.seconds)

        try:
            with heard_by(listen):
                yield
        finally:
            disk.remove(run.closing)


def read_closing(run: Run) -> ClosingRecord | None:
    """Read what a run does after its last reply; None if it does nothing, or nothing readable."""
    try:
        return ClosingRecord.model_validate_json(read_bytes(run.closing))
    except (OSError, ValueError, ValidationError):
        return None


def _write(path: Path, words: str) -> None:
    record = {"words": words, "written": datetime.now(UTC).isoformat()}
    disk.write_text(path, json.dumps(record) + "\n")
