"""Files of models: the keys under which completions are stored, and language models without images."""

import errno
import hashlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from cardiolens.base.errors import InputError
from cardiolens.config.model import ModelSpec
from cardiolens.inference.models import identity
from cardiolens.inference.models.chat import Chat
from cardiolens.inference.models.identity import identify, kept_sha256
from cardiolens.storage.schemas import FRAME


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
    told = {"engine_options": {"load_format": "dummy"}, "template_options": {"enable_thinking": False}}
    assert key(folder, **told) == "m-9b6c53f925c0d3a2"


@pytest.mark.parametrize(
    "options", [{"mm_processor_cache_gb": 8}, {"max_num_batched_tokens": 4096, "enforce_eager": True}]
)
def test_how_an_engine_works_is_no_part_of_the_key(folder: Path, options: Mapping[str, object]):
    assert key(folder, engine_options=options) == key(folder)


@pytest.mark.parametrize(
    "options",
    [
        {"kv_cache_dtype": "fp8"},
        {"mm_processor_kwargs": {"max_pixels": 100_000}},
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

    monkeypatch.setattr(identity, "sha256_of", locked)
    with pytest.raises(InputError, match=r"model m: .*\.(json|jinja): Permission denied; change its perm"):
        key(folder)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files that were read."""
    seen: list[str] = []

    def sha256(file: Path) -> str:
        seen.append(file.name)
        return hashlib.sha256(file.read_bytes()).hexdigest()

    monkeypatch.setattr(identity, "sha256_of", sha256)
    monkeypatch.setattr(identity, "_SETTLED_NS", -(10**9))  # as if every file were old
    return seen


def test_a_file_is_read_once(tmp_path: Path, reads: list[str]) -> None:
    file, kept = tmp_path / "weights", tmp_path / "models" / "digests.json"
    file.write_bytes(b"one")
    assert kept_sha256(file, kept) == kept_sha256(file, kept) == hashlib.sha256(b"one").hexdigest()
    assert reads == ["weights"]


def test_a_file_that_was_changed_is_read_again_even_with_its_old_time(
    tmp_path: Path, reads: list[str]
) -> None:
    file, kept = tmp_path / "weights", tmp_path / "digests.json"
    file.write_bytes(b"one")
    kept_sha256(file, kept)
    state = file.stat()
    file.write_bytes(b"two")
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert kept_sha256(file, kept) == hashlib.sha256(b"two").hexdigest()
    assert reads == ["weights", "weights"]


def test_a_file_that_changed_a_moment_ago_is_not_kept(tmp_path: Path) -> None:
    file, kept = tmp_path / "weights", tmp_path / "digests.json"
    file.write_bytes(b"one")
    kept_sha256(file, kept)
    assert not kept.exists()
    long_ago = time.time() - 60
    os.utime(file, (long_ago, long_ago))  # its change of anything is now
    kept_sha256(file, kept)
    assert not kept.exists()


TEMPLATE = (
    "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] | trim }}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


@pytest.fixture(scope="module")
def text_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    root = tmp_path_factory.mktemp("text_model")
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "no": 1, "LGE": 2}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]", chat_template=TEMPLATE)
    fast.save_pretrained(root)
    (root / "config.json").write_text(
        json.dumps({"model_type": "llama", "architectures": ["LlamaForCausalLM"]})
    )
    return root


def test_a_language_model_has_prompts_of_texts(text_model: Path) -> None:
    chat = Chat(text_model)
    assert chat.prompt("read", "no LGE") == "<system>read<user>no LGE<assistant>"
    assert chat.count("read", "no LGE", ()) > 0


def test_a_language_model_refuses_frames(text_model: Path) -> None:
    with pytest.raises(InputError, match="language model without images"):
        Chat(text_model).prompt("read", f"{FRAME}no LGE?")
