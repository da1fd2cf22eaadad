"""The environment that workers and their engines get, and a cluster's address at which nothing listens."""

import socket

import pytest

from cardiolens.base.errors import RunError
from cardiolens.runtime.connect import check_answers, for_workers


def test_the_users_own_variables_reach_engines_and_secrets_do_not():
    found = for_workers(
        {
            "VLLM_LOGGING_LEVEL": "DEBUG",
            "VLLM_ATTENTION_BACKEND": "FLASH_ATTN",
            "VLLM_API_KEY": "secret",
            "HF_HOME": "/models",
            "HF_TOKEN": "secret",
            "OMP_NUM_THREADS": "1",
            "HOME": "/home/me",
        }
    )
    assert found["VLLM_LOGGING_LEVEL"] == "DEBUG"
    assert found["VLLM_ATTENTION_BACKEND"] == "FLASH_ATTN"
    assert found["HF_HOME"] == "/models"
    assert found["OMP_NUM_THREADS"] == "1"
    assert found["TRANSFORMERS_VERBOSITY"] == "error"
    assert "secret" not in found.values()
    assert "HOME" not in found


def test_without_any_engines_are_quiet():
    assert for_workers({})["VLLM_LOGGING_LEVEL"] == "WARNING"


@pytest.mark.parametrize("address", ["127.0.0.1:{port}", "ray://localhost:{port}", "127.0.0.1:70000"])
def test_an_address_where_nothing_listens_is_told_at_once(address: str):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(RunError, match=r"no Ray cluster answers there .* python -m cardiolens\.head"):
        check_answers(address.format(port=port))


@pytest.mark.parametrize("address", ["127.0.0.1:{port}", "ray://localhost:{port}", "auto", "/tmp/ray"])
def test_what_listens_or_only_ray_understands_is_left_to_ray(address: str):
    with socket.create_server(("127.0.0.1", 0)) as server:
        check_answers(address.format(port=server.getsockname()[1]))
