"""Walls and levels that a sentence may name, to detect lists of places that were read only in part."""

import re
from collections.abc import Mapping

from cardiolens.protocol.tasks.catalogue import Subtask

_LEVELS = {
    "Basal segment": r"\b(basal|base|basis)\b",
    "Mid segment": r"\bmid\b(?![- ]?(wall|myocard))|\bmid-?(ventric\w*|cavity|level)\b|\bmidventric\w*",
    "Apical segment": r"\b(apical|distal)\b(?!\s+cap)",
    "Apex": r"\bapex\b|\bapical cap\b",
}
_WALLS = {
    "Anterior wall": r"\bant(erior)?\b(?!\s+(sept|lat))",
    "Septal wall": r"\b(antero|infero)?-?\s?sept(al|um)?\b",
    "Inferior wall": r"\binf(erior)?\b(?!\s+(sept|lat))",
    "Lateral wall": r"\b(antero|infero)?-?\s?lat(eral)?\b",
}
_RIGHT = {"Right ventricular free wall": r"\b(rv|right ventric\w*)\b(?! (insertion|hinge|junction))"}
_ALL = r"\b(all|every|each|entire|whole|global\w*|circumferential\w*|throughout)\b"
_NUMBERS = r"\bseg(?:ment)?s?\b\.?\s*(?:aha\s*)?((?:\d{1,2}(?:\s*(?:,|and|&|/|to|-|–)\s*)?)+)"
_LEVEL_OF = ((1, 6, "Basal segment"), (7, 12, "Mid segment"), (13, 16, "Apical segment"), (17, 17, "Apex"))
_WALL_OF = {
    "Anterior wall": {1, 7, 13},
    "Septal wall": {2, 3, 8, 9, 14},
    "Inferior wall": {4, 10, 15},
    "Lateral wall": {5, 6, 11, 12, 16},
}


def options_of_extent(sentence: str, subtask: Subtask, *, levels: bool) -> set[str]:
    """Return the option texts (levels or walls) of a subtask that a sentence may name."""
    levels_named = {bare_place(name) for name in _named(sentence, levels=levels)}
    levels_named |= {name for name, pattern in _RIGHT.items() if re.search(pattern, sentence, re.IGNORECASE)}
    texts = (option.text for option in subtask.options)
    return {text for text in texts if bare_place(text) in levels_named}


def bare_place(option: str) -> str:
    """Return the name that the options of several subtasks have for one level or wall."""
    return option.removesuffix(" segment")


def _named(sentence: str, *, levels: bool) -> set[str]:
    words: Mapping[str, str] = _LEVELS if levels else _WALLS
    options = {option for option, pattern in words.items() if re.search(pattern, sentence, re.IGNORECASE)}
    if re.search(_ALL, sentence, re.IGNORECASE):
        options |= words.keys() - {"Apex"}
    for listed in re.finditer(_NUMBERS, sentence, re.IGNORECASE):
        for first, last in re.findall(r"(\d{1,2})(?:\s*(?:to|-|–)\s*(\d{1,2}))?", listed[1]):
            for number in range(int(first), min(17, int(last or first)) + 1):
                options |= _levels(number) if levels else _walls(number)
    return options


def _levels(number: int) -> set[str]:
    return {level for first, last, level in _LEVEL_OF if first <= number <= last}


def _walls(number: int) -> set[str]:
    return {wall for wall, numbers in _WALL_OF.items() if number in numbers}
