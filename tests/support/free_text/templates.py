"""Load the templates and phrases of free-text reports from YAML."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import ConfigDict, TypeAdapter

Style = Literal["headed", "narrative", "terse"]
STYLES: tuple[Style, ...] = ("headed", "narrative", "terse")
_DATA = Path(__file__).parent / "data"
_STRICT = ConfigDict(extra="forbid")

Templates = Mapping[str, tuple[str, ...]]  # by value; `other` for values without templates of their own


@dataclass(frozen=True)
class Group:
    """Findings that are stated together, and their sentence templates."""

    part: str  # the heading above the sentences
    tells: tuple[str, ...]  # catalogue fields that the sentences state
    by: str  # the field whose value selects the template
    headed: Templates
    narrative: Templates
    terse: Templates
    places: str | None = None
    doubted: str | None = None

    __pydantic_config__ = _STRICT

    def sentences(self, style: Style, value: str) -> tuple[str, ...]:
        """Return the templates of a style for a value."""
        templates: Templates = getattr(self, style)
        return templates[value] if value in templates else templates["other"]

    def has(self, style: Style, value: str) -> bool:
        templates: Templates = getattr(self, style)
        return value in templates


@dataclass(frozen=True)
class Words:
    """Phrases for slots by field and value, and names of walls by segment."""

    full: Mapping[str, Templates]
    terse: Mapping[str, Templates]
    walls: Mapping[str, Mapping[int, str]]
    american: Mapping[str, str] = field(default_factory=dict)

    __pydantic_config__ = _STRICT

    def of(self, style: Style) -> Mapping[str, Templates]:
        return self.terse if style == "terse" else self.full


@lru_cache(maxsize=1)
def groups() -> dict[str, Group]:
    """Load the groups of findings by name, in report order."""
    return TypeAdapter(dict[str, Group]).validate_python(_tree("findings"))


@lru_cache(maxsize=1)
def words() -> Words:
    """Load the phrases."""
    return TypeAdapter(Words).validate_python(_tree("words"))


@lru_cache(maxsize=1)
def frames() -> dict[str, Any]:
    """Load the texts around the findings: headings, openings, priors, closings."""
    tree: dict[str, Any] = _tree("frames")
    return tree


def _tree(name: str) -> Any:
    return yaml.safe_load((_DATA / f"{name}.yaml").read_text(encoding="utf-8"))
