"""What stands for a frame in a prompt, where a chat template leaves it to the caller."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cardiolens.storage.model_files import read_object

_BY_ARCHITECTURE = {  # as vLLM's class of the model declares it
    "KimiVLForConditionalGeneration": "<|media_start|>image<|media_content|><|media_pad|><|media_end|>",
    "MiniCPMV": "(<image>./</image>)",
    "Phi3VForCausalLM": "<|image_{number}|>",
    "Phi4MMForCausalLM": "<|image_{number}|>",
}
_WITHOUT_SPECIAL = frozenset({"Gemma4ForConditionalGeneration"})


def placeholder(folder: Path, processor: Any, overrides: Mapping[str, Any]) -> str | None:
    """The text in place of one frame, {number} for its number from 1; None if nothing declares it.

    Families without an entry here name it in their processor.
    """
    for name in _architectures(folder, overrides):
        if name in _BY_ARCHITECTURE:
            return _BY_ARCHITECTURE[name]
    declared = getattr(processor, "image_token", None)
    return declared if isinstance(declared, str) else None


def adds_special_tokens(folder: Path, overrides: Mapping[str, Any]) -> bool:
    """True if vLLM has the tokenizer of this model add its own special tokens to a prompt."""
    return _WITHOUT_SPECIAL.isdisjoint(_architectures(folder, overrides))


def _architectures(folder: Path, overrides: Mapping[str, Any]) -> list[str]:
    """The classes that config.json names, or those that vLLM is told to take instead."""
    path = folder / "config.json"
    names = ((read_object(path) if path.exists() else {}) | dict(overrides)).get("architectures")
    return [str(name) for name in names] if isinstance(names, list) else []
