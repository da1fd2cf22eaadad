"""Warnings of a replica on their way to the driver: in the log of its actor nobody would see them."""

import logging
from collections import deque
from typing import Final

_MOST: Final = 20  # that wait to be taken; of more, the last


class ToldWarnings(logging.Handler):
    """Collects what the package warns of in this process."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._waiting = deque[str](maxlen=_MOST)

    @classmethod
    def of_this_process(cls) -> "ToldWarnings":
        """Return a collector that the package's messages reach; the process's own log keeps them, too."""
        told, ours = cls(), logging.getLogger("cardiolens")
        ours.addHandler(told)
        ours.addHandler(logging.StreamHandler())
        return told

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a message until it is taken."""
        self._waiting.append(record.getMessage())

    def take(self) -> list[str]:
        """Return the messages since the last call."""
        taken = list(self._waiting)
        self._waiting.clear()
        return taken
