"""The clock that ends a run in which nothing is completed any more; loading an engine is no stall."""

import logging
import time
from pathlib import Path
from typing import Final

from cardiolens.base.errors import RunError
from cardiolens.config.steps import StreamSpec
from cardiolens.inference.stream.loading import RENEWED_SECONDS, LoadingSigns

log = logging.getLogger(__name__)

_TOLD_SECONDS: Final = 60.0
_SEEN_SECONDS: Final = 12 * RENEWED_SECONDS  # a shared file system may show a renewed sign this much later


class StallClock:
    """Seconds since a completion, and since engines began to load, against their limits."""

    def __init__(self, completions: Path, spec: StreamSpec) -> None:
        self._signs, self._spec = LoadingSigns(completions), spec
        self._looked = self._told = time.monotonic()
        self.restart()

    def restart(self) -> None:
        """Begin anew: something was completed."""
        self._since = time.monotonic()
        self._loading_since: float | None = None

    def check(self) -> None:
        """RunError if nothing was completed for too long, or an engine has been loading for too long."""
        now = time.monotonic()
        self._look(now)
        if self._loading_since is not None and self._since - self._loading_since > self._spec.load_seconds:
            raise RunError(
                f"an engine has been loading for {self._spec.load_seconds:g} s: see its logs, copy the "
                "weights to a disk of the node (on SLURM cluster.stage=true does), or raise "
                "stream.load_seconds; what was completed is kept"
            )
        if now - self._since > self._spec.stall_seconds:
            raise RunError(
                f"no request was completed for {self._spec.stall_seconds:g} s; the engine hangs or is too "
                "slow: see its logs, or raise stream.stall_seconds; what was completed is kept, run again"
            )

    def _look(self, now: float) -> None:
        """Start the stall clock anew where an engine shows that it is loading."""
        if now - self._looked < min(RENEWED_SECONDS / 2, self._spec.stall_seconds / 4):
            return
        self._looked, share = now, self._signs.renewed()
        if share is None:
            if now - self._since > _SEEN_SECONDS:
                self._loading_since = None
            return
        self._since = now
        self._loading_since = self._loading_since or now
        if now - self._told > _TOLD_SECONDS:
            self._told = now
            minutes = (now - self._loading_since) / 60
            log.info(
                "an engine is loading for %.0f min%s", minutes, f", {share} of its weights" * bool(share)
            )
