"""Words of prompts, loaded from `words.yaml`."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import yaml
from pydantic import BaseModel, ConfigDict


class Words(BaseModel):
    """Words for sequences, views, times, rules and closing lines, and points to work through."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sequences: Mapping[str, str]
    views: Mapping[str, str]
    times: Mapping[str, str]
    rules: Mapping[str, str]
    exclusive: str
    closings: Mapping[str, Mapping[str, str]]
    examples: Mapping[str, str]
    paper: Mapping[str, tuple[str, ...]]


@cache
def words() -> Words:
    """Load the packaged words once."""
    text = files("cardiolens.protocol.prompts").joinpath("words.yaml").read_text(encoding="utf-8")
    return Words.model_validate(yaml.safe_load(text))
