"""Legal names in the order of their likeness to a mistyped one."""

import difflib
from collections.abc import Iterable

_MOST = 3  # names that stand first
_ALIKE = 0.6  # of difflib's ratio; below it a name is not what was meant


def nearest_first(name: str, legal: Iterable[str]) -> list[str]:
    """All legal names, those most like `name` first and the others in their order."""
    listed = list(legal)
    near = difflib.get_close_matches(name, listed, n=_MOST, cutoff=_ALIKE)
    return [*near, *(other for other in listed if other not in near)]
