"""Canonical studies, and the classes that the sampler draws from, as data (specification 10.4)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import ConfigDict, TypeAdapter

from cardiolens.errors import InputError
from cardiolens.phantom.parameters import Parameters, parameters

DATA = Path(__file__).parent / "data"
_STRICT = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class Variant:
    """A canonical study and what is changed against it."""

    study: str
    change: Mapping[str, Any] = field(default_factory=dict, hash=False)

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class Archetype:
    """One diagnostic class: how often it occurs and what it looks like."""

    share: float
    etiology: str
    variants: Mapping[str, Variant] = field(hash=False)
    subtype: str | None = None

    __pydantic_config__ = _STRICT


@lru_cache(maxsize=1)
def canonical_values() -> dict[str, dict[str, Any]]:
    """What every canonical study sets, by name."""
    tree: dict[str, dict[str, Any]] = yaml.safe_load((DATA / "canonical.yaml").read_text())
    return tree


@lru_cache(maxsize=1)
def archetypes() -> dict[str, Archetype]:
    """The classes by name."""
    tree = yaml.safe_load((DATA / "archetypes.yaml").read_text())
    return {name: TypeAdapter(Archetype).validate_python(entry) for name, entry in tree.items()}


def canonical(name: str) -> Parameters:
    """The parameters of a canonical study; InputError lists the legal names."""
    known = canonical_values()
    if name not in known:
        raise InputError(f"canonical study {name!r} does not exist; choose from {', '.join(known)}")
    return parameters(known[name], name)


def variant_parameters(variant: Variant) -> Parameters:
    """The parameters of a variant."""
    return parameters(canonical_values()[variant.study] | dict(variant.change), variant.study)


def archetype_of(study: str) -> str:
    """The class to which a canonical study belongs."""
    return next(
        name
        for name, archetype in archetypes().items()
        if any(variant.study == study for variant in archetype.variants.values())
    )


def pick(point: float, weights: Sequence[float]) -> tuple[int, float]:
    """Where a point of [0, 1) falls among weights, and where in that interval it lies, again in [0, 1)."""
    place = point * sum(weights)
    for index, weight in enumerate(weights):
        if place < weight:
            return index, place / weight
        place -= weight
    return len(weights) - 1, 0.0
