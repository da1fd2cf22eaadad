"""Language models without images: they answer about texts, and refuse frames with a clear error."""

import json
from pathlib import Path

import pytest

from cardiolens.base.errors import InputError
from cardiolens.inference.models.chat import Chat
from cardiolens.storage.schemas import FRAME

TEMPLATE = (
    "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] | trim }}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
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


def test_a_language_model_has_prompts_of_texts(folder: Path) -> None:
    chat = Chat(folder)
    assert chat.prompt("read", "no LGE") == "<system>read<user>no LGE<assistant>"
    assert chat.count("read", "no LGE", ()) > 0


def test_a_language_model_refuses_frames(folder: Path) -> None:
    with pytest.raises(InputError, match="language model without images"):
        Chat(folder).prompt("read", f"{FRAME}no LGE?")
