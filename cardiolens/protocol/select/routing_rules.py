"""Routing tables, loaded from `rules.yaml`."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import yaml
from pydantic import BaseModel, ConfigDict

Views = tuple[str, ...]


class Rules(BaseModel):
    """The views of each sequence, and their substitutes and fallbacks."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    views: Mapping[str, Views]
    pools: Mapping[str, Views]
    substitutes: Mapping[str, Views]
    fallback: Mapping[str, Views]
    t2_weights: Mapping[str, int]
    levels: Views

    def members(self, name: str) -> Views:
        """Return the views of a routed name."""
        return self.pools.get(name, (name,))


@cache
def rules() -> Rules:
    """Load the packaged rules once."""
    text = files("cardiolens.protocol.select").joinpath("rules.yaml").read_text(encoding="utf-8")
    return Rules.model_validate(yaml.safe_load(text))
