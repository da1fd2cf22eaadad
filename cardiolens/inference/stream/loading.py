"""Loading of engines: a sign that one loads, and the clock that ends a run which stands still."""

import logging
import os
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from cardiolens.base import disk
from cardiolens.base.errors import RunError
from cardiolens.base.untrusted.bounded_files import read_text
from cardiolens.config.sweep import StreamSpec

RENEWED_SECONDS: Final = 10.0
_PATTERN: Final = ".loading-*"
_REPORT_SECONDS: Final = 60.0
_SEEN_SECONDS: Final = 12 * RENEWED_SECONDS  # a shared file system may show a renewed sign this much later

log = logging.getLogger(__name__)


@contextmanager
def sign_of_loading(completions: Path, renewed_seconds: float = RENEWED_SECONDS) -> Iterator[None]:
    """Renew a sign within the block.

    A sign that cannot be written is left out: it only keeps `stream.stall_seconds` from counting.
    """
    sign = completions / f".loading-{os.uname().nodename}-{os.getpid()}-{secrets.token_hex(4)}"
    loaded = threading.Event()

    def renew() -> None:
        number = 0
        while number == 0 or not loaded.wait(renewed_seconds):
            with suppress(OSError):
                disk.write_text(sign, str(number))
            number += 1

    thread = threading.Thread(target=renew, name="loading", daemon=True)
    thread.start()
    try:
        yield
    finally:
        loaded.set()
        thread.join()
        with suppress(OSError):
            disk.remove(sign)


class StallClock:
    """Seconds since a completion, and since engines began to load, against their limits."""

    def __init__(self, completions: Path, spec: StreamSpec) -> None:
        self._folder, self._spec = completions, spec
        self._signs = self._read_signs()  # those that killed engines left
        self._looked = self._reported = time.monotonic()
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
                "weights to a disk of the node, or raise stream.load_seconds; what was completed is kept"
            )
        if now - self._since > self._spec.stall_seconds:
            raise RunError(
                f"no request was completed for {self._spec.stall_seconds:g} s; the engine hangs or is too "
                "slow: see its logs, or raise stream.stall_seconds; what was completed is kept, run again"
            )

    def _look(self, now: float) -> None:
        """Start the stall clock anew where an engine renewed its sign since the last look."""
        if now - self._looked < min(RENEWED_SECONDS / 2, self._spec.stall_seconds / 4):
            return
        before, self._signs, self._looked = self._signs, self._read_signs(), now
        if all(before.get(name) == text for name, text in self._signs.items()):
            if now - self._since > _SEEN_SECONDS:
                self._loading_since = None
            return
        self._since = now
        self._loading_since = self._loading_since or now
        if now - self._reported > _REPORT_SECONDS:
            self._reported = now
            log.info("an engine is loading for %.0f min", (now - self._loading_since) / 60)

    def _read_signs(self) -> dict[str, str]:
        signs = {}
        for path in self._folder.glob(_PATTERN):
            with suppress(OSError, ValueError):
                signs[path.name] = read_text(path)
        return signs
