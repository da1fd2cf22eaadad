"""What Hydra leaves open: the log files of the commands that it ran itself."""

import gc
import logging
import warnings
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _close_logs_of_hydra() -> Iterator[None]:
    yield
    logs = [one for one in logging.root.handlers if isinstance(one, logging.FileHandler)]
    for handler in logs:
        logging.root.removeHandler(handler)
        handler.close()
    if logs:  # an earlier run in the same test dropped its log without closing it
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()
