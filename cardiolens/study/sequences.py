"""The sequences and views that a study may hold (protocol 1.1), as data."""

from functools import cache
from importlib.resources import files
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter

SHORT_AXIS = "sax"


class Sequence(BaseModel):
    """One sequence: how its volumes are called, what its phases are, in which views it is acquired."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    prefix: str
    over_time: Literal["cycle", "first_pass", "nothing"]
    views: tuple[str, ...]

    def volume_id(self, view: str) -> str:
        """The view code of protocol 1.1, e.g. perf_sax."""
        return f"{self.prefix}_{view}"


@cache
def sequences() -> dict[str, Sequence]:
    """Every sequence by its name."""
    text = files("cardiolens.study").joinpath("sequences.yaml").read_text(encoding="utf-8")
    return TypeAdapter(dict[str, Sequence]).validate_python(yaml.safe_load(text))
