"""Phrases for sets of segments; each phrase covers exactly the given segments."""

from collections.abc import Sequence
from dataclasses import dataclass

from cardiolens.phantom.draws import Draws
from cardiolens.protocol.tasks.segments import LEVELS, SEGMENTS, WALL_SEGMENTS
from tests.support.free_text.templates import Style, words

_CAP = 17


@dataclass(frozen=True, slots=True)
class Place:
    """A phrase for a place, and whether it takes a plural verb."""

    text: str
    plural: bool


def place(segments: Sequence[int], style: Style, draw: Draws) -> Place:
    """Name segments in the words of a style, in one of several forms."""
    if tuple(segments) in (SEGMENTS, WALL_SEGMENTS):
        return Place(_everywhere(style, with_cap=_CAP in segments), plural=True)
    if len(segments) > 1 and draw.chance(0.25):
        return _numbered(segments, style)
    return _named(segments, style, draw)


def _everywhere(style: Style, *, with_cap: bool) -> str:
    if style == "terse":
        return "all segs incl. apical cap" if with_cap else "all basal, mid + apical segs"
    return "all 17 segments" if with_cap else "all basal, mid and apical segments"


def _numbered(segments: Sequence[int], style: Style) -> Place:
    if style == "terse":
        return Place(f"segs {', '.join(map(str, segments))}", plural=True)
    return Place(f"AHA segments {joined([str(segment) for segment in segments])}", plural=True)


def _named(segments: Sequence[int], style: Style, draw: Draws) -> Place:
    terse = style == "terse"
    names = words().walls["terse" if terse else "full"]
    levels_of: dict[str, list[str]] = {}
    for level, members in LEVELS.items():
        for segment in sorted(members & set(segments) - {_CAP}):
            levels_of.setdefault(names[segment], []).append(level)
    by_levels: dict[tuple[str, ...], list[str]] = {}
    for wall, levels in levels_of.items():
        by_levels.setdefault(tuple(levels), []).append(wall)
    cap = _CAP in segments
    if terse:
        parts = [f"{'-'.join(levels)} {'/'.join(walls)}" for levels, walls in by_levels.items()]
        return Place(", ".join([*parts, *(["apical cap"] if cap else [])]), plural=True)
    if len(levels_of) == 1 and not cap and draw.chance(0.5):
        ((wall, levels),) = levels_of.items()
        return Place(f"the {wall} wall at {joined(levels)} level", plural=False)
    parts = [f"{joined(levels)} {joined(walls)} segments" for levels, walls in by_levels.items()]
    text = joined([f"the {part}" for part in parts] + (["the apical cap"] if cap else []))
    return Place(text, plural=bool(parts))


def joined(parts: Sequence[str]) -> str:
    """Join parts with commas and a final `and`."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
