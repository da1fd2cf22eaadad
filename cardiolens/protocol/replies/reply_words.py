"""The words of the strict reader: `reply_words.yaml`, validated once."""

import functools
from importlib import resources

import yaml
from pydantic import BaseModel, ConfigDict


class Block(BaseModel):
    """Patterns of what opens and closes text that is no answer."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    open: str
    close: str


class Words(BaseModel):
    """The lexicon of `reply_words.yaml`, which describes each entry."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    hidden: tuple[Block, ...]
    next_turn: tuple[str, ...]
    answer_tags: tuple[str, ...]
    openings: str
    nouns: tuple[str, ...]
    is_: str
    json_keys: frozenset[str]
    joins: str
    labels: str
    reasons: str
    doubts: str
    refusals: tuple[str, ...]


@functools.cache
def words() -> Words:
    """Load the lexicon."""
    text = resources.files(__package__).joinpath("reply_words.yaml").read_text(encoding="utf-8")
    tree = yaml.safe_load(text)
    tree["is_"] = tree.pop("is")
    tree["doubts"] = "".join(tree["doubts"].split("\n")).replace(" |", "|")
    return Words.model_validate(tree)
