"""Words of prompts, loaded from `words.yaml`."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import yaml
from pydantic import BaseModel, ConfigDict


class Words(BaseModel):
    """Words for rules, closing lines, and questions that belong to no sequence of a study."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sequences: Mapping[str, str]
    rules: Mapping[str, str]
    suggestions: Mapping[str, str]
    exclusive: str
    closings: Mapping[str, Mapping[str, str]]
    examples: Mapping[str, str]


@cache
def words() -> Words:
    """Load the packaged words once."""
    text = files("cardiolens.protocol.prompts").joinpath("words.yaml").read_text(encoding="utf-8")
    return Words.model_validate(yaml.safe_load(text))
