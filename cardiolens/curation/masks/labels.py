"""Label maps: the tissue of each mask value in a segmentation convention."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import yaml
from numpy.typing import NDArray
from pydantic import ConfigDict, TypeAdapter

from cardiolens.base.errors import InputError

Tissues = NDArray[np.uint8]
LesionKind = Literal["scar", "oedema"]


class Tissue(IntEnum):
    """The tissues that masks distinguish."""

    BACKGROUND = 0
    RV_BLOOD = 1
    LV_BLOOD = 2
    MYOCARDIUM = 3
    SCAR = 4
    OEDEMA = 5
    OBSTRUCTION = 6
    PAPILLARY = 7
    PAPILLARY_LESION = 8
    RV_WALL = 9
    RV_WALL_LESION = 10
    OTHER = 11


CAVITY = (Tissue.LV_BLOOD, Tissue.PAPILLARY, Tissue.PAPILLARY_LESION)
WALL = (Tissue.MYOCARDIUM, Tissue.SCAR, Tissue.OEDEMA, Tissue.OBSTRUCTION)


@dataclass(frozen=True)
class LabelMap:
    """One segmentation convention: its sequences, its lesions (`tells`) and its values."""

    name: str
    source: str
    sequences: tuple[str, ...]
    tells: tuple[LesionKind, ...]
    values: Mapping[int | str, str]
    whole_heart: bool = False

    __pydantic_config__ = ConfigDict(extra="forbid")

    def tissue_of(self, sequence: str) -> dict[int, Tissue]:
        """Return the tissue of each mask value on a sequence."""
        lesion = "oedema" if sequence == "t2" else "scar"
        tissue_by_value: dict[int, Tissue] = {}
        for key, name in self.values.items():
            low, _, high = str(key).partition("-")
            tissue = Tissue[(lesion if name == "lesion" else name).upper()]
            tissue_by_value |= dict.fromkeys(range(int(low), int(high or low) + 1), tissue)
        return tissue_by_value

    def told_on(self, sequence: str) -> list[LesionKind]:
        """Return the lesions that masks of a sequence label."""
        tissues = set(self.tissue_of(sequence).values())
        return [kind for kind in self.tells if Tissue[kind.upper()] in tissues]

    def fits(self, values: set[int], sequence: str) -> bool:
        """Return whether every value has a tissue on a sequence."""
        return values <= set(self.tissue_of(sequence))

    def tissues(self, mask: NDArray[Any], sequence: str) -> Tissues:
        """Convert a mask to tissues; InputError names values without a tissue."""
        tissue_of = self.tissue_of(sequence)
        values, places = np.unique(mask, return_inverse=True)
        unknown = [value for value in values.tolist() if value not in tissue_of]
        if unknown:
            raise InputError(
                f"the mask has the values {', '.join(f'{value:g}' for value in unknown[:8])}; expected "
                f"those of {self.name} ({', '.join(map(str, self.values))}); name the mask's "
                f"convention, one of {', '.join(label_maps())}"
            )
        table = np.array([tissue_of[int(value)] for value in values.tolist()], dtype=np.uint8)
        return table[places.reshape(mask.shape)]


@lru_cache(maxsize=1)
def label_maps() -> dict[str, LabelMap]:
    """Load the conventions by name."""
    tree = yaml.safe_load((Path(__file__).parent / "labels.yaml").read_text(encoding="utf-8"))
    maps = {name: {"name": name, **entry} for name, entry in tree.items()}
    return TypeAdapter(dict[str, LabelMap]).validate_python(maps)


def label_map(name: str) -> LabelMap:
    """Return a convention by name; InputError lists the legal names."""
    if name not in label_maps():
        raise InputError(f"label map {name!r} is not known; choose one of {', '.join(label_maps())}")
    return label_maps()[name]
