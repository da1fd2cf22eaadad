"""Details of a line of boxes: where, how deep and how much stands behind the options of its field.

`LGE: ( ) no (x) yes   layer: subendo ( ) mid (x)   walls: A ( ) S (x)   level: B (x) M (x) A ( )`
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

_NAME = re.compile(
    r"(?:[ \t]{2,}|\t|,[ \t]*)(?P<name>where|grade|sites?|location|layers?|walls?|levels?|segments?"
    r"|pattern)[ \t]*:",
    re.IGNORECASE,
)
_SPLIT = re.compile(r"[ \t]{2,}(?=\S)")
_NOTHING = re.compile(r"[\s.,;:_–-]*(?:none|nil|n/?a)?[\s.]*", re.IGNORECASE)
# What the letters of a field of boxes stand for; each word has room in its letter and box.
_OF_FIELD: Mapping[str, Mapping[str, str]] = {
    "wall": {"a": "ant", "s": "sept", "i": "inf", "l": "lat"},
    "level": {"b": "bas", "m": "mid", "a": "apic", "apex": "apex"},
    "layer": {"subendo": "subendo", "mid": "mw", "subepi": "subepi", "transmural": "transmural"},
}


def details_apart(line: str) -> tuple[str, list[tuple[str, int, int]]]:
    """Return the fields before the details of a line, and the name and span of each detail."""
    names = list(_NAME.finditer(line))
    if not names:
        return line, []
    ends = [*(match.start() for match in names[1:]), len(line.rstrip("\n"))]
    spans = [(match["name"].lower(), match.end(), end) for match, end in zip(names, ends, strict=True)]
    return line[: names[0].start()], spans


def layer_of(option: str) -> str | None:
    """The layer that an option of a form means: `mid` is no level there; None for any other word."""
    word = _OF_FIELD["layer"].get(option.lower())
    return word if word is not None and len(word) <= len(option) else None


def written_details(
    line: str, spans: Sequence[tuple[str, int, int]], boxes: Sequence[tuple[int, int, bool]]
) -> str | None:
    """Return the details of a line in their places; None where one of them is not understood."""
    letters = list(re.sub(r"[^\n]", " ", line))
    for name, start, end in spans:
        of_field = [box for box in boxes if start <= box[0] < end]
        if of_field:
            ticked = list(_ticked(line, name, start, of_field))
            if any(word is None for _, word in ticked) or line[of_field[-1][1] : end].strip():
                return None
            for place, word in ticked:
                letters[place - 1] = ","
                letters[place : place + len(word or "")] = word or ""
        elif not _NOTHING.fullmatch(line[start:end]):
            if _SPLIT.search(line[start:end].strip()) or ":" in line[start:end]:
                return None
            letters[start:end] = line[start:end]
            letters[start - 1] = ","
    return "".join(letters)


def _ticked(
    line: str, name: str, start: int, boxes: Sequence[tuple[int, int, bool]]
) -> Iterator[tuple[int, str | None]]:
    """Yield the place and the word of each ticked option, which stands before its box."""
    kind = next((kind for kind in _OF_FIELD if name.startswith(kind)), "")
    for (_, before, _), (box, _, is_ticked) in pairwise([(start, start, False), *boxes]):
        option = line[before:box].strip()
        if is_ticked:
            word = _OF_FIELD.get(kind, {}).get(option.lower())
            place = line.index(option, before) if option else before
            yield place, word if word and line[place - 1].isspace() else None
