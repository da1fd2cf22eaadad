"""The parameters of one phantom, validated from YAML values (protocol 10.1, 10.3)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import ConfigDict, TypeAdapter

Segments = tuple[int, ...]
_DATA = Path(__file__).parent / "data"
_STRICT = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class LesionShape:
    """Region of changed signal: segments between two depths (0 endocardium, 1 epicardium), or elsewhere."""

    segments: Segments = ()
    depth: tuple[float, float] = (0.0, 1.0)
    pattern: Literal["continuous", "patchy", "speckled"] = "continuous"
    papillary: bool = False
    rv_free_wall: bool = False
    island_deg: float = 25.0  # size of one island of a patchy lesion
    island_mm: float = 12.0
    insertion: bool = False  # islands of the septum lie at its junctions with the right ventricle

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class DefectShape:
    """Segments with abnormal first-pass enhancement between two depths; 1 is the epicardium."""

    segments: Segments
    depth: float = 1.0
    inner: float = 0.0
    papillary: bool = False
    uptake: float = 0.35  # as a share of normal
    delay: float = 3.0  # beats

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class Parameters:
    """The parameters of one heart; lengths in mm, the protocol's symbols in comments."""

    radius: float = 24.0  # R, of the LV cavity at the base
    length: float = 90.0  # L, of the LV cavity
    wall: float = 9.0  # w at end-diastole
    wall_of: Mapping[int, float] = field(default_factory=dict, hash=False)  # w by segment, else `wall`
    cap: float = 6.0  # w_a, of the apical cap
    contraction: float = 0.33  # c
    motion_of: Mapping[int, float] = field(default_factory=dict, hash=False)  # k by segment, else 1
    bulge_of: Mapping[int, float] = field(default_factory=dict, hash=False)  # b by segment, else 0
    delay_of: Mapping[int, float] = field(default_factory=dict, hash=False)  # by segment, else 0; in cycles
    mapse: float = 12.0
    early_filling: float = 0.75  # fE
    rv_width: float = 36.0  # W_rv
    rv_contraction: float = 0.38  # c_rv
    tapse: float = 20.0
    rv_wall: float = 3.0
    rv_bump: float = 0.0  # outpouching of the free wall at end-diastole
    rv_bump_growth: float = 0.0  # its growth in systole
    la_radius: float = 20.0
    ra_radius: float = 20.0
    fluid: float = 1.0  # e, thickness of pericardial fluid
    pericardial_enhancement: bool = False  # of the outer layer of the fluid, on LGE
    pleural_fluid: float = 0.0  # greatest thickness
    pulmonary_artery: float = 0.0  # radius; 0 paints none
    aortic_opening: float = 1.0  # of the aortic valve in systole, as a share of its radius
    bsa: float = 1.8  # m2
    mitral_regurgitation: bool = False
    tricuspid_regurgitation: bool = False
    aortic_regurgitation: bool = False
    restricted_mitral_opening: bool = False
    outflow_jet: bool = False
    systolic_anterior_motion: bool = False
    jet_length: float = 24.0
    lge: tuple[LesionShape, ...] = ()
    lge_low: tuple[LesionShape, ...] = ()  # dark cores inside `lge`
    oedema: tuple[LesionShape, ...] = ()
    t2_low: tuple[LesionShape, ...] = ()
    defect: DefectShape | None = None

    __pydantic_config__ = _STRICT

    def wall_in(self, segment: int) -> float:
        """Return the end-diastolic wall thickness of a segment, mm."""
        return self.wall_of.get(segment, self.wall)

    def delay_in(self, segment: int) -> float:
        """Return the delay of contraction of a segment, as a share of the cycle."""
        return self.delay_of.get(segment, 0.0)


_PARAMETERS = TypeAdapter(Parameters)


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


@cache
def data_file(name: str) -> dict[str, Any]:
    """Load a data file of the phantom."""
    tree: dict[str, Any] = yaml.safe_load((_DATA / f"{name}.yaml").read_text(encoding="utf-8"))
    return tree


def canonical_values() -> dict[str, dict[str, Any]]:
    """Return the parameter values of each canonical study, by study name."""
    return data_file("canonical")


@cache
def archetypes() -> dict[str, Archetype]:
    """Return the diagnostic classes by name."""
    return TypeAdapter(dict[str, Archetype]).validate_python(data_file("archetypes"))


@cache
def modifiers() -> dict[str, Modifier]:
    """Return the modifiers by name."""
    return TypeAdapter(dict[str, Modifier]).validate_python(data_file("modifiers"))


def canonical(name: str) -> Parameters:
    """Return the parameters of a canonical study."""
    return _PARAMETERS.validate_python(canonical_values()[name])


def variant_parameters(variant: Variant, changes: Iterable[Modifier] = ()) -> Parameters:
    """Return the parameters of a variant after applying the modifiers in order."""
    values: dict[str, Any] = canonical_values()[variant.study] | dict(variant.change)
    for modifier in changes:
        values |= modifier.set
        values |= {name: [*values.get(name, []), *more] for name, more in modifier.add.items()}
    return _PARAMETERS.validate_python(values)


def archetype_of(study: str) -> str:
    """Return the diagnostic class of a canonical study."""
    return next(
        name
        for name, archetype in archetypes().items()
        if study in archetype.beside or any(one.study == study for one in archetype.variants.values())
    )
