"""What Hydra leaves open: the log file of a command that it ran itself."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _close_logs_of_hydra() -> Iterator[None]:
    yield
    for handler in [one for one in logging.root.handlers if isinstance(one, logging.FileHandler)]:
        logging.root.removeHandler(handler)
        handler.close()
