"""Engines that are loading: each renews a sign beside the completions, so that nobody takes it for stuck."""

import os
import re
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from cardiolens.base import disk
from cardiolens.base.untrusted.bounded_files import read_text
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
