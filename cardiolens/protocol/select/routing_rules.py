"""The tables of routing as frozen data."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import yaml
from pydantic import BaseModel, ConfigDict

Views = tuple[str, ...]


class Rules(BaseModel):
    """The views of each sequence, and the views that may stand in for others (`rules.yaml`)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    views: Mapping[str, Views]
    pools: Mapping[str, Views]
    substitutes: Mapping[str, Views]
    fallback: Mapping[str, Views]
    t2_weights: Mapping[str, int]
    levels: Views

    def members(self, name: str) -> Views:
        """The views that a routed name stands for."""
        return self.pools.get(name, (name,))


@cache
def rules() -> Rules:
    """The packaged rules, read once."""
    text = files("cardiolens.protocol.select").joinpath("rules.yaml").read_text(encoding="utf-8")
    return Rules.model_validate(yaml.safe_load(text))
