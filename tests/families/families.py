"""The families of the catalogue (`families.yaml`): architecture, tokenizer, template, traits of prompts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from cardiolens.config.model import ModelSpec
from tests.families import templates
from tests.support.tiny_model import tiny


@dataclass(frozen=True)
class Family:
    """Stand-ins for what a family publishes, as far as a prompt depends on it."""

    architecture: str
    template: str
    placeholder: str  # in the rendered prompt, {number} for the number of the image
    eos: str
    special: tuple[str, ...] = tiny.SPECIAL  # of the tokenizer
    named: Mapping[str, str] = field(default_factory=dict)  # special tokens that the tokenizer names
    words: tuple[str, ...] = ()  # of its vocabulary, on which its processor relies
    bos: str | None = None
    adds_bos: bool = False  # the tokenizer does, with no template
    cut: bool = False  # white space at the ends of a text
    options: Mapping[str, bool] = field(default_factory=dict)  # of the template, as in conf/model
    made: Mapping[str, Any] = field(default_factory=dict)  # of what a tiny model is made; see build.py

    @property
    def model(self) -> ModelSpec:
        """A model with the template options of the family."""
        return ModelSpec(name="m", source="hub/m", template_options=self.options, trust_remote_code=True)


def _read() -> Mapping[str, Family]:
    text = Path(__file__).with_suffix(".yaml").read_text("utf-8")
    texts = vars(templates) | {"tiny": tiny.CHAT_TEMPLATE}
    return {
        name: Family(**entry | {"template": texts[entry["template"]]})
        for name, entry in yaml.safe_load(text).items()
        if name != "_sizes"
    }


FAMILIES = _read()


def tokenizer(family: Family) -> Any:
    """A byte-level tokenizer, trained on a few sentences, with the special tokens of a family."""
    from tokenizers import processors
    from transformers import PreTrainedTokenizerFast

    core = tiny.trained(family.special)
    if family.adds_bos:
        bos = str(family.bos)
        core.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", special_tokens=[(bos, core.token_to_id(bos))]
        )
    core.add_tokens(list(family.words))
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        bos_token=family.bos,
        eos_token=family.eos,
        pad_token=family.special[0],
        unk_token="<unk>" if "<unk>" in family.special else family.special[0],
        extra_special_tokens=dict(family.named),
        additional_special_tokens=[token for token in family.special if token not in family.named.values()],
        model_max_length=32768,
        chat_template=family.template,
    )
