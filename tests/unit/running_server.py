"""A server in a thread of its own while a test asks it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import BaseServer
from typing import TypeVar

from cardiolens.show.local_server import LocalServer

S = TypeVar("S", bound=BaseServer | LocalServer)

POLL_SECONDS = 0.02  # how often a server looks whether it is to stop


@contextmanager
def running(server: S) -> Iterator[S]:
    """Serve until the end, however that comes.

    A thread that goes on after a failed test keeps pytest from ending, without a word.
    """
    poll = [POLL_SECONDS] if isinstance(server, BaseServer) else []
    with server:
        thread = threading.Thread(target=server.serve_forever, args=poll, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
