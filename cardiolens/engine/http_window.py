"""How many requests a server bears at once: found out by asking, as TCP does (AIMD)."""

_START = 8


class Window:
    """Grows by one a reply until the server first throttles, then by one a window; halved by each throttling.

    Requests that were sent before the last cut say nothing new: they do not cut again.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._limit = float(min(most, _START))
        self._throttled = False
        self._cut_at = float("-inf")

    @property
    def size(self) -> int:
        """Requests allowed at the server now; at least one."""
        return int(self._limit)

    def succeeded(self) -> None:
        """A request was answered."""
        self._limit = min(self._most, self._limit + (1 / self._limit if self._throttled else 1))

    def throttled(self, sent_at: float, now: float) -> None:
        """A request that was sent at `sent_at` was turned away for being one too many."""
        if sent_at < self._cut_at:
            return
        self._throttled = True
        self._limit = max(1.0, self._limit / 2)
        self._cut_at = now
