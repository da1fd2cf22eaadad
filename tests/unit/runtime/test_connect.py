"""The environment that workers and their engines get."""

from cardiolens.runtime.connect import for_workers


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
