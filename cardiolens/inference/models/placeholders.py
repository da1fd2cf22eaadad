"""Image placeholders of models whose chat template leaves them to the caller."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cardiolens.storage.model_files import read_object

_BY_ARCHITECTURE = {  # as declared by vLLM's class of the model
    "KimiVLForConditionalGeneration": "<|media_start|>image<|media_content|><|media_pad|><|media_end|>",
    "MiniCPMV": "(<image>./</image>)",
    "Phi3VForCausalLM": "<|image_{number}|>",
    "Phi4MMForCausalLM": "<|image_{number}|>",
}
_WITHOUT_SPECIAL = frozenset({"Gemma4ForConditionalGeneration"})


def placeholder(folder: Path, processor: Any, overrides: Mapping[str, Any]) -> str | None:
    """Return the placeholder of one frame, with {number} for its number from 1; None if none is declared.

    Model families without an entry in this module declare the placeholder in their processor.
    """
    for name in architectures(folder, overrides):
        if name in _BY_ARCHITECTURE:
            return _BY_ARCHITECTURE[name]
    declared = getattr(processor, "image_token", None)
    return declared if isinstance(declared, str) else None


def adds_special_tokens(folder: Path, overrides: Mapping[str, Any]) -> bool:
    """Return whether vLLM lets this model's tokenizer add its special tokens to a prompt."""
    return _WITHOUT_SPECIAL.isdisjoint(architectures(folder, overrides))


def architectures(folder: Path, overrides: Mapping[str, Any]) -> list[str]:
    """Return the model classes that config.json names, or the classes in `overrides`, as vLLM uses them."""
    path = folder / "config.json"
    names = ((read_object(path) if path.exists() else {}) | dict(overrides)).get("architectures")
    return [str(name) for name in names] if isinstance(names, list) else []
