"""Tables of masks: the tissue of each value by convention, grades of measurements, and reasons for doubt."""

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
from cardiolens.base.phrasing import NameWithMeaning

Tissues = NDArray[np.uint8]
LesionKind = Literal["scar", "oedema"]
Sex = Literal["male", "female"]
Bands = Mapping[str, tuple[float, float]]


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
    """One segmentation convention: its sequences, the lesions that it labels, and its values."""

    name: str
    source: str
    sequences: tuple[str, ...]
    lesions: tuple[LesionKind, ...]
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

    def lesions_on(self, sequence: str) -> list[LesionKind]:
        """Return the lesions that masks of a sequence label."""
        tissues = set(self.tissue_of(sequence).values())
        return [kind for kind in self.lesions if Tissue[kind.upper()] in tissues]

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
    maps = {name: {"name": name, **entry} for name, entry in _table("labels.yaml").items()}
    return TypeAdapter(dict[str, LabelMap]).validate_python(maps)


def label_map(name: str) -> LabelMap:
    """Return a convention by name; InputError lists the legal names."""
    if name not in label_maps():
        raise InputError(f"label map {name!r} is not known; choose one of {', '.join(label_maps())}")
    return label_maps()[name]


@dataclass(frozen=True)
class Quantity:
    """A measured quantity and its reference ranges by sex."""

    finding: str
    unit: str
    source: str
    male: Bands
    female: Bands

    __pydantic_config__ = ConfigDict(extra="forbid")

    def grade(self, number: float, sex: Sex | None) -> str | None:
        """Return the grade of a number; None between two bands, or if the grade depends on an unknown sex."""
        bands = [self.male, self.female] if sex is None else [self.male if sex == "male" else self.female]
        grades_met = {
            next((value for value, (low, high) in band.items() if low <= number <= high), None)
            for band in bands
        }
        return grades_met.pop() if len(grades_met) == 1 else None


@lru_cache(maxsize=1)
def quantities() -> dict[str, Quantity]:
    """Load the quantities by name."""
    return TypeAdapter(dict[str, Quantity]).validate_python(_table("grades.yaml"))


def _table(name: str) -> dict[str, Any]:
    tree: dict[str, Any] = yaml.safe_load((Path(__file__).parent / name).read_text(encoding="utf-8"))
    return tree


class MaskReason(NameWithMeaning):
    """A reason why a mask gives no certain answer, and its meaning."""

    NOT_LABELLED = "not_labelled", "the masks do not label the structure"
    ONE_MOMENT = "one_moment", "end-diastole or end-systole is not labelled"
    NO_BODY_SIZE = "no_body_size", "volumes are graded by body surface, which is not known"
    BETWEEN_GRADES = "between_grades", "the measurement lies between two options"
    NO_MOTION = "no_motion", "masks at two phases do not show how a wall moves"
    BULGING = "bulging", "a thin wall may bulge, which is not measured"
    NO_SEGMENTS = "no_segments", "slice order or display is uncertain, or no ring of muscle is closed"
    APICAL_CAP = "apical_cap", "the answer depends on the apical cap, which the slices do not cut"
    SEGMENT_IN_DOUBT = "segment_in_doubt", "the answer depends on segments that are barely affected"
    LAYER_IN_DOUBT = "layer_in_doubt", "the depth of a lesion fits no layer, or several"
    STRUCTURE_NOT_LABELLED = "structure_not_labelled", "papillary muscles or the RV wall are not labelled"
    HIDDEN_BY_SCAR = "hidden_by_scar", "the label map allows one lesion per voxel, so scar hides oedema"
    NOT_PLAUSIBLE = "not_plausible", "the cavity is not smaller in end-systole"
