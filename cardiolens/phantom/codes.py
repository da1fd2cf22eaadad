"""Tissue codes: the value of each tissue in rendered planes and in the mask files."""

import numpy as np

from cardiolens.phantom.parameters import data_file

BACKGROUND = 0
# 1 .. 17: left ventricular myocardium by AHA segment
LV_BLOOD = 20
PAPILLARY = 21
RV_BLOOD = 22
RV_WALL = 23
LA_BLOOD = 24
RA_BLOOD = 25
AORTA = 26
FLUID = 27
BASE_WALL = 28  # atrial and aortic walls, annuli
LEAFLET = 29
JET = 30
FAT = 31
SLOW_FLOW = 32
LUNG, LIVER, CHEST_MUSCLE, CHEST_FAT, AIR, DESCENDING_AORTA = 33, 34, 35, 36, 37, 38
PLEURAL_FLUID, PULMONARY_ARTERY = 39, 40

# codes that the heart and the pericardial fluid may be painted over
SURROUNDINGS = np.zeros(256, dtype=bool)
SURROUNDINGS[
    [BACKGROUND, FAT, LUNG, LIVER, CHEST_MUSCLE, CHEST_FAT, AIR, DESCENDING_AORTA, PLEURAL_FLUID]
] = True

LESION = 100  # added to the code of the tissue with the lesion: 101 .. 117, 121, 123, 127
OBSTRUCTION = 150  # low signal; added to the code of the tissue: 151 .. 167, 171
DARK_RIM = 200  # added to the code of the segment


def labels() -> dict[int, str]:
    """Return the name of every code."""
    tissues: dict[int, str] = {int(code): name for code, name in data_file("tissues").items()}
    names = dict(tissues)
    for segment in range(1, 18):
        names[segment] = f"myocardium, segment {segment}"
        names[LESION + segment] = f"lesion, segment {segment}"
        names[OBSTRUCTION + segment] = f"microvascular obstruction, segment {segment}"
        names[DARK_RIM + segment] = f"dark rim artefact, segment {segment}"
    for code in (PAPILLARY, RV_WALL, FLUID):
        names[LESION + code] = f"lesion, {tissues[code]}"
    names[OBSTRUCTION + PAPILLARY] = f"microvascular obstruction, {tissues[PAPILLARY]}"
    return dict(sorted(names.items()))
