"""The legal sequences and views of a study (protocol 1.1), loaded from sequences.yaml."""

from functools import cache
from importlib.resources import files
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter

SHORT_AXIS = "sax"
PICTURE = "picture"  # sequence of questions on one picture of a public benchmark, whose volume is CASE_IMAGES
CASE_IMAGES = "images"  # sequence, view and volume_id of case images, which belong to no study


class Sequence(BaseModel):
    """One sequence: the prefix of its volume ids, the meaning of its phases, and its views."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    prefix: str
    over_time: Literal["cycle", "first_pass", "nothing"]
    views: tuple[str, ...]

    def volume_id(self, view: str) -> str:
        """Return the view code of protocol 1.1, e.g. perf_sax."""
        return f"{self.prefix}_{view}"


@cache
def sequences() -> dict[str, Sequence]:
    """Load all sequences by name."""
    text = files("cardiolens.study").joinpath("sequences.yaml").read_text(encoding="utf-8")
    return TypeAdapter(dict[str, Sequence]).validate_python(yaml.safe_load(text))
