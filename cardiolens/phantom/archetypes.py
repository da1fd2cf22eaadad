"""Canonical studies and diagnostic classes for the sampler, loaded from YAML (protocol 10.4)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import ConfigDict, TypeAdapter

from cardiolens.base.errors import InputError
from cardiolens.phantom.parameters import Parameters, parameters

DATA = Path(__file__).parent / "data"
_STRICT = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class Variant:
    """A canonical study and the parameter values that replace some of its own."""

    study: str
    change: Mapping[str, Any] = field(default_factory=dict, hash=False)

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class Archetype:
    """One diagnostic class: its share of the cohort and its variants."""

    share: float
    etiology: str
    variants: Mapping[str, Variant] = field(hash=False)
    subtype: str | None = None
    beside: tuple[str, ...] = ()  # canonical studies of the class that are not drawn from

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class Modifier:
    """A parameter change drawn independently of the variant; an empty `classes` means every class."""

    share: float
    classes: tuple[str, ...] = ()
    set: Mapping[str, Any] = field(default_factory=dict, hash=False)
    add: Mapping[str, list[Any]] = field(default_factory=dict, hash=False)

    __pydantic_config__ = _STRICT

    def belongs_to(self, archetype: str) -> bool:
        return not self.classes or archetype in self.classes


@lru_cache(maxsize=1)
def canonical_values() -> dict[str, dict[str, Any]]:
    """Load the parameter values of each canonical study, by study name."""
    tree: dict[str, dict[str, Any]] = yaml.safe_load((DATA / "canonical.yaml").read_text())
    return tree


@lru_cache(maxsize=1)
def archetypes() -> dict[str, Archetype]:
    """Load the diagnostic classes by name."""
    tree = yaml.safe_load((DATA / "archetypes.yaml").read_text())
    return TypeAdapter(dict[str, Archetype]).validate_python(tree)


@lru_cache(maxsize=1)
def modifiers() -> dict[str, Modifier]:
    """Load the modifiers by name."""
    tree = yaml.safe_load((DATA / "modifiers.yaml").read_text())
    return TypeAdapter(dict[str, Modifier]).validate_python(tree)


def canonical(name: str) -> Parameters:
    """Return the parameters of a canonical study; InputError lists the legal names."""
    canonical_all = canonical_values()
    if name not in canonical_all:
        raise InputError(f"canonical study {name!r} does not exist; choose from {', '.join(canonical_all)}")
    return parameters(canonical_all[name], name)


def variant_parameters(variant: Variant, changes: Iterable[Modifier] = ()) -> Parameters:
    """Return the parameters of a variant after applying the modifiers in order."""
    values: dict[str, Any] = canonical_values()[variant.study] | dict(variant.change)
    for modifier in changes:
        values |= modifier.set
        values |= {name: [*values.get(name, []), *more] for name, more in modifier.add.items()}
    return parameters(values, variant.study)


def archetype_of(study: str) -> str:
    """Return the diagnostic class of a canonical study."""
    return next(
        name
        for name, archetype in archetypes().items()
        if study in archetype.beside or any(one.study == study for one in archetype.variants.values())
    )
