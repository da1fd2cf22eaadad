"""Leave out tests that need torchvision, which has no build for CPU on package indexes, where it is missing."""

from importlib.util import find_spec

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if find_spec("torchvision"):
        return
    lacking = [item for item in items if item.get_closest_marker("torchvision")]
    config.hook.pytest_deselected(items=lacking)
    items[:] = [item for item in items if item not in lacking]
