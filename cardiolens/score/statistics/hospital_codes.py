"""Hospitals as a level of chance above patients, where enough of them are known (protocol 17.12)."""

from collections.abc import Mapping, Sequence

import numpy as np

from cardiolens.score.statistics.items import Ints

# From so many on, how hospitals differ can be estimated, if roughly; fewer speak of themselves alone.
FEWEST_HOSPITALS = 5


def hospital_codes(patients: Sequence[str], hospitals: Mapping[str, str]) -> Ints | None:
    """A number for the hospital of each patient; None unless every patient's is known, and five or more."""
    names = [hospitals.get(patient) for patient in patients]
    distinct = sorted({name for name in names if name is not None})
    if None in names or len(distinct) < FEWEST_HOSPITALS:
        return None
    number = {name: at for at, name in enumerate(distinct)}
    return np.array([number[name] for name in names if name is not None], np.int64)
