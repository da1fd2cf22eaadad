"""Place slices by SliceLocation where a tool wrote one position into all images of a series."""

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from cardiolens.curation.ingest.image import Image
from cardiolens.curation.ingest.series_piles import SAME_PLACE_MM
from cardiolens.curation.ingest.stack import normal

LOCATION_FLAG = "slices_by_location"  # its sign is each maker's own, so the slices' direction is not known


def placed_by_location(images: Sequence[Image]) -> list[Image]:
    """Return the frames, flagged and moved where locations tell more slices than positions do."""
    groups: dict[Hashable, list[Image]] = defaultdict(list)
    for image in images:
        if image.reading is None and image.location is not None:
            groups[_key(image)].append(image)
    moved = {
        image: _moved(image, group[0]) for group in groups.values() if _is_told(group) for image in group
    }
    return [moved.get(image, image) for image in images]


def _key(image: Image) -> Hashable:
    """Return what slices of one stack share; some makers number the series of a stack in their names."""
    name = re.sub(r"\d+", "", image.description) or image.identity.series
    directions = np.round((*image.row_direction, *image.column_direction), 2) + 0.0
    return name, image.rows, image.columns, tuple(directions)


def _is_told(group: Sequence[Image]) -> bool:
    along = normal(group[0])
    positions = _places(float(np.dot(image.position, along)) for image in group)
    return _places(image.location or 0.0 for image in group) > positions


def _places(values: Iterable[float]) -> int:
    """Return how many different places there are."""
    return 1 + int(np.sum(np.diff(sorted(values)) >= SAME_PLACE_MM))


def _moved(image: Image, first: Image) -> Image:
    away = (image.location or 0.0) - (first.location or 0.0)
    x, y, z = (float(value) for value in np.array(first.position) + away * normal(first))
    return replace(image, position=(x, y, z), flags=(*image.flags, LOCATION_FLAG))
