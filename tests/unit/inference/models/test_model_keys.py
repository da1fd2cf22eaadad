"""Keys under which completions are stored: what decides them, and what must not."""

import errno
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from cardiolens.base.errors import InputError
from cardiolens.config.model import ModelSpec
from cardiolens.inference.models import identity
from cardiolens.inference.models.identity import identify


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model's files of fixed content, and versions that do not change with the installed ones."""
    monkeypatch.setattr(identity, "installed_engine", lambda: ("cpu", "0.32.0"))
    monkeypatch.setattr(identity, "version", lambda package: "5.19.0")
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"architectures": ["Idefics3ForConditionalGeneration"]}))
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    return folder


def key(folder: Path, **options: object) -> str:
    model = ModelSpec.model_validate({"name": "m", "source": str(folder), **options})
    return identify(model, folder.parent / "cache").model_key


def test_keys_without_engine_options_are_those_of_stored_completions(folder: Path):
    assert key(folder) == "m-e725c2290e477a0c"
    assert (
        key(folder, engine_options={"load_format": "dummy"}, template_options={"enable_thinking": False})
        == "m-9b6c53f925c0d3a2"
    )


@pytest.mark.parametrize(
    "options",
    [
        {"mm_processor_cache_gb": 8},
        {"mm_encoder_tp_mode": "data", "enable_expert_parallel": True},
        {"max_num_batched_tokens": 4096, "enforce_eager": True},
        {"log_level": "debug"},
    ],
)
def test_how_an_engine_works_is_no_part_of_the_key(folder: Path, options: Mapping[str, object]):
    assert key(folder, engine_options=options) == key(folder)


@pytest.mark.parametrize(
    "options",
    [
        {"kv_cache_dtype": "fp8"},
        {"mm_processor_kwargs": {"max_pixels": 100_000}},
        {"hf_overrides": {"rope_theta": 1e6}},
        {"reasoning_parser": "glm45"},
        {"tokenizer_mode": "hf"},
        {"an_option_of_a_later_vllm": 1},
    ],
)
def test_what_may_change_answers_is_part_of_the_key(folder: Path, options: Mapping[str, object]):
    changed = key(folder, engine_options=options)
    assert changed != key(folder)
    assert key(folder, engine_options={**options, "mm_processor_cache_gb": 8}) == changed


def test_files_that_are_closed_to_the_user_are_a_fault_of_this_model(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    """So that the other models of a sweep can go on."""

    def locked(file: Path) -> str:
        raise PermissionError(errno.EACCES, "Permission denied", str(file))

    monkeypatch.setattr("cardiolens.inference.models.identity.sha256_of", locked)
    with pytest.raises(InputError, match=r"model m: .*\.(json|jinja): Permission denied; change its perm"):
        key(folder)
