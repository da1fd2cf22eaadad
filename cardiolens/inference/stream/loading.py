"""Loading of engines: how far each has come, and the clock that ends a run which stands still."""

import logging
import os
import re
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
from cardiolens.inference.engine.startup import written_since, written_so_far

RENEWED_SECONDS: Final = 10.0
_PATTERN: Final = ".loading-*"
# What vLLM shows of the files of a checkpoint.
_SHARDS: Final = re.compile(r"checkpoint shards:\s+(\d+)% Completed")


@contextmanager
def sign_of_loading(completions: Path, renewed_seconds: float = RENEWED_SECONDS) -> Iterator[None]:
    """Renew a sign within the block, with the percentage of the weights that vLLM says it has read.

    A sign that cannot be written is left out: it only keeps `stream.stall_seconds` from counting.
    """
    sign = completions / f".loading-{os.uname().nodename}-{os.getpid()}-{secrets.token_hex(4)}"
    loaded, began = threading.Event(), written_so_far()

    def renew() -> None:
        number = 0
        while True:
            with suppress(OSError):
                disk.write_text(sign, f"{number} {share_read(written_since(began))}")
            number += 1
            if loaded.wait(renewed_seconds):
                return

    thread = threading.Thread(target=renew, name="loading", daemon=True)
    thread.start()
    try:
        yield
    finally:
        loaded.set()
        thread.join()
        with suppress(OSError):
            disk.remove(sign)


def share_read(text: str) -> str:
    """Percentage of the checkpoint's files that vLLM says it has read; empty if it does not say."""
    found = _SHARDS.findall(text)
    return f"{found[-1]} %" if found else ""


class LoadingSigns:
    """The signs in a folder, as a driver looks at them again and again."""

    def __init__(self, completions: Path) -> None:
        self._folder = completions
        self._seen = self._signs()  # those that killed engines left

    def renewed(self) -> str | None:
        """How far engines are whose signs changed since the last look, "" if they do not say; else None."""
        before, self._seen = self._seen, self._signs()
        changed = [text for name, text in self._seen.items() if before.get(name) != text]
        return max((text.partition(" ")[2] for text in changed), default=None)

    def _signs(self) -> dict[str, str]:
        signs = {}
        for path in self._folder.glob(_PATTERN):
            with suppress(OSError, ValueError):
                signs[path.name] = read_text(path)
        return signs


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
                "weights to a disk of the node, or raise stream.load_seconds; what was completed is kept"
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
