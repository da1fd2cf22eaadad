"""Leave out tests that need torchvision where it is missing: package indexes have no build of it for CPU."""

from importlib.util import find_spec

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if find_spec("torchvision"):
        return
    lacking = [item for item in items if item.get_closest_marker("torchvision")]
    config.hook.pytest_deselected(items=lacking)
    items[:] = [item for item in items if item not in lacking]
