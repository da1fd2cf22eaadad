"""The facts of a run of two simulated readers, of which tests make those of models."""

from pathlib import Path

import pytest
from page_run import finished, small_spec

from cardiolens.show.page.page_data import Facts, read_facts


@pytest.fixture(scope="module")
def simulated(root: Path) -> Facts:
    """Two readers, each with and without images."""
    run = finished(small_spec(root, "simulated"))
    return read_facts(run, [run])
