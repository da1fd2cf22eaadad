"""A machine with a GPU; elsewhere these tests are skipped."""

import pytest

from tests.ray.conftest import place, prepared

__all__ = ["gpus", "place", "prepared"]


@pytest.fixture(scope="session")
def gpus() -> int:
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    return torch.cuda.device_count()
