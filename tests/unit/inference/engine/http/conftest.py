"""A small cohort planned for a model behind a server, whose key is in SOME_KEY."""

from pathlib import Path

import pytest

from cardiolens.inference.plan.plan import Plan
from tests.unit.asked import KEY, planned_for_server


@pytest.fixture(scope="module")
def planned(root: Path) -> Plan:
    return planned_for_server(root)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", KEY)
