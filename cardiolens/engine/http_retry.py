"""When to ask a server again: a pure schedule."""

import email.utils
from dataclasses import dataclass
from datetime import datetime

_DOUBLINGS = 30  # beyond, any first wait is longer than the longest


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits that double from try to try, up to a longest, each shortened by up to a half at random."""

    first: float  # seconds
    longest: float = 60.0

    def wait(self, tries: int, draw: float, retry_after: float | None = None) -> float:
        """Seconds to wait after so many tries; never less than the server asked for.

        `draw` is a random number of 0..1, so that requests that failed together do not come back together.
        """
        doubled = self.first * 2.0 ** min(tries - 1, _DOUBLINGS)
        own = min(self.longest, doubled) * (1 - draw / 2)
        return own if retry_after is None else max(own, retry_after * (1 + draw / 10))


def read_retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds that a `Retry-After` header asks for: a number, or a date (RFC 9110, 10.2.3); else None."""
    if value is None:
        return None
    try:
        return max(0.0, float(value)) if float(value) < float("inf") else None
    except ValueError:
        pass
    try:
        return max(0.0, (email.utils.parsedate_to_datetime(value) - now).total_seconds())
    except (ValueError, TypeError):
        return None
