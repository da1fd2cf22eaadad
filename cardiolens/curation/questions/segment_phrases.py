"""AHA segments that a clause names, by number or by a level and a wall."""

import re
from collections.abc import Mapping

_NAMED = re.compile(r"\bsegments?\s*(?:aha\s*)?((?:\d{1,2}(?:\s*(?:,|and|&|-|–|/)\s*)?)+)", re.IGNORECASE)
_LEVELS = {
    "basal": r"\b(basal|base)\b",
    "mid": r"\bmid(?:-?(?:ventricular|cavity|level))?\b(?![- ]?(wall|myocard))",
    "apical": r"\bapical\b",
}
_WALLS: Mapping[str, tuple[str, Mapping[str, int]]] = {
    "anteroseptal": (r"\bantero-?\s?sept\w+", {"basal": 2, "mid": 8}),
    "inferoseptal": (r"\binfero-?\s?sept\w+", {"basal": 3, "mid": 9}),
    "inferolateral": (r"\binfero-?\s?lateral\w*", {"basal": 5, "mid": 11}),
    "anterolateral": (r"\bantero-?\s?lateral\w*", {"basal": 6, "mid": 12}),
    "anterior": (r"\banterior\b(?!\s+(sept|lateral))", {"basal": 1, "mid": 7, "apical": 13}),
    "inferior": (r"\binferior\b(?!\s+(sept|lateral))", {"basal": 4, "mid": 10, "apical": 15}),
    "septal": (r"\b(apical sept\w+)", {"apical": 14}),
    "lateral": (r"\b(apical lateral)\b", {"apical": 16}),
}  # fmt: skip
_RANGE = re.compile(r"\bto\b|\bthrough\b|–")
_CAP = re.compile(r"\b(apex|apical cap)\b", re.IGNORECASE)


def segments(quote: str) -> tuple[int, ...]:
    """Return the segments, 1 to 17, that a clause names; empty if any is ambiguous."""
    if match := _NAMED.search(quote):
        return _numbers(match[1])
    if _RANGE.search(quote):
        return ()
    levels = [level for level, pattern in _LEVELS.items() if re.search(pattern, quote, re.IGNORECASE)]
    walls = [entry for pattern, entry in _WALLS.values() if re.search(pattern, quote, re.IGNORECASE)]
    if walls and not all(any(level in wall for level in levels) for wall in walls):
        return ()
    segment_numbers = {wall[level] for wall in walls for level in levels if level in wall}
    if _CAP.search(quote):
        segment_numbers.add(17)
    return tuple(sorted(segment_numbers))


def _numbers(phrase: str) -> tuple[int, ...]:
    numbers: set[int] = set()
    for first, last in re.findall(r"(\d{1,2})(?:\s*[-–]\s*(\d{1,2}))?", phrase):
        numbers |= set(range(int(first), int(last or first) + 1))
    return tuple(sorted(numbers)) if numbers <= set(range(1, 18)) else ()
