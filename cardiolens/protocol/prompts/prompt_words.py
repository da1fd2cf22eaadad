"""The words of prompts as frozen data."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import yaml
from pydantic import BaseModel, ConfigDict


class Words(BaseModel):
    """Words for sequences, views, times, rules and closing lines (`words.yaml`)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sequences: Mapping[str, str]
    views: Mapping[str, str]
    times: Mapping[str, str]
    rules: Mapping[str, str]
    exclusive: str
    closings: Mapping[str, Mapping[str, str]]


@cache
def words() -> Words:
    """The packaged words, read once."""
    text = files("cardiolens.protocol.prompts").joinpath("words.yaml").read_text(encoding="utf-8")
    return Words.model_validate(yaml.safe_load(text))
