"""The product gives what it gave; `python -m tests.golden make NAME` accepts a change."""

import pytest

from tests.golden.goldens import GOLDENS, difference, made


@pytest.mark.full
@pytest.mark.parametrize("name", GOLDENS)
def test_golden(name: str) -> None:
    assert difference(name, made(name)) == ""
