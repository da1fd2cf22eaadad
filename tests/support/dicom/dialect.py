"""Vendor dialects, loaded from YAML: the tags that scanners write and the series names that users type."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BeforeValidator, ConfigDict, TypeAdapter

_DATA = Path(__file__).parent / "data"
_STRICT = ConfigDict(extra="forbid")

Words = Annotated[
    tuple[str, ...], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)
]
Order = Literal["slice_major", "phase_major", "shuffled"]


@dataclass(frozen=True)
class Acquisition:
    """The DICOM tags of one kind of acquisition."""

    image_type: Words
    sequence: Words
    variant: Words
    options: Words
    sequence_name: str
    tr: float
    te: float
    flip: float
    ti: float | None = None
    component: Literal["MAGNITUDE", "REAL", "PHASE"] = "MAGNITUDE"
    contrast: str = "UNKNOWN"
    derived: bool = False  # computed from the preceding series

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class Private:
    """One private element; its value may contain the identity, which an importer must drop."""

    group: int
    creator: str
    element: int
    vr: Literal["CS", "LO", "SH", "UI", "OB", "IS", "SS", "SL", "FL"]
    value: str

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class Numbering:
    """Series numbers: the first, the step, and the share and size of gaps."""

    first: int
    step: int
    gap_share: float
    gap: int

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class Dialect:
    """The export habits of one vendor."""

    manufacturer: str
    models: tuple[str, ...]
    field_tesla: float
    software: str
    bits_stored: int
    psir_offset: int  # stored value of zero signal in phase-sensitive images
    position_decimals: int
    cosine_decimals: int
    trigger_decimals: int
    orders: tuple[Order, ...]
    numbering: Numbering
    folder: str
    file: str
    acquisitions: Mapping[str, Acquisition]
    names: Mapping[str, Mapping[str, tuple[str, ...]]]  # series names by kind and view
    generic: tuple[str, ...]  # names without a view, which may name another sequence
    private: tuple[Private, ...]
    signed: bool = False
    multiframe: bool = False
    constants: Mapping[str, str | float] = field(default_factory=dict, hash=False)  # of multi-frame images
    spacing_between_slices: bool = True
    temporal_position: tuple[str, ...] = ()  # kinds whose images have a TemporalPositionIdentifier
    cumulative_trigger: bool = False  # of a first pass: from its start, not from each R wave
    slopes: tuple[float, ...] = (1.0,)
    grouping: Mapping[str, tuple[Literal["slice", "stack"], ...]] = field(default_factory=dict, hash=False)
    together: tuple[tuple[str, ...], ...] = ()  # stacks that share one series in half of the studies
    derived_number: int = 0  # of a series derived from n: 0 next free, 1: n + 1, k: k * n
    twins: float = 0.0  # share of studies with both LGE reconstructions in one series

    __pydantic_config__ = _STRICT


@cache
def dialect(vendor: str) -> Dialect:
    """Load the dialect of a vendor from its data file."""
    tree = yaml.safe_load((_DATA / f"{vendor}.yaml").read_text(encoding="utf-8"))
    return TypeAdapter(Dialect).validate_python(tree)
