"""The product gives what it gave; `python -m tests.golden make NAME` accepts a change."""

import pytest

from tests.golden.goldens import GOLDENS, SLOW, difference, made

NAMES = [pytest.param(name, marks=pytest.mark.long if name in SLOW else pytest.mark.full) for name in GOLDENS]


@pytest.mark.filterwarnings("ignore::UserWarning")  # of pydicom, on values that an export bends
@pytest.mark.parametrize("name", NAMES)
def test_golden(name: str) -> None:
    assert difference(name, made(name)) == ""
