"""Forms: of a line of boxes only what is ticked is said; a line without one tick says nothing."""

import re
from itertools import pairwise

_BOX = re.compile(
    r"\[\s*(?P<square>[xX✓✔√])?\s*\]|\(\s*(?P<round>[xX✓✔√•])?\s*\)|(?<!\w)_\s?(?P<line>[xX])\s?_(?!\w)"
    r"|(?<=\s)_(?=\s)|(?P<ticked>[☒☑🗹●◉⦿■])|[☐□○◯]"
)
_BARE_LABEL = re.compile(r"([^\W\d_][^:\n()\[\]]*?)(?P<gap>[ \t]+)$")
# An option, a wide gap and the label of another field, which names a structure or a finding of its own.
_FIELD = re.compile(
    r"(?P<option>[^\n]*?\S)[ ]*(?P<break>(?<=  ) |[\t|]) *(?=(?:LV|RV|LA|RA|LVEF|RVEF|left|right|LGE|late|T2"
    r"|STIR|o?edema|perfusion|effusion|pericard\w*|MR|TR|AR|mitral|tricuspid|aortic|atri\w*|thrombus|scar|RWMA)\b)",
    re.IGNORECASE,
)
_LABEL = re.compile(r"[^:\n]*:\s*")


def of_forms(text: str) -> str:
    """Blank out what the lines with boxes do not say; every letter that is left keeps its place."""
    return "".join(map(_ticked, _fields_apart(text).splitlines(keepends=True)))


def _fields_apart(text: str) -> str:
    """Put each field of a line of boxes into a line of its own: `LV [x] normal [ ] big   RV [ ] ...`."""
    return "".join(map(_own_lines, text.splitlines(keepends=True)))


def _own_lines(line: str) -> str:
    boxes = list(_BOX.finditer(line))
    if len(boxes) < 4 or not line[boxes[-1].end() :].strip() or not line[: boxes[0].start()].strip():
        return line  # a box stands behind its option, or before the first label
    for before, box in pairwise(boxes):
        field = _FIELD.match(line, before.end(), box.start())
        if field is not None and field["option"].strip():
            start, end = field.start("break"), field.end()
            line = f"{line[:start]}{' ' * (end - start - 1)}\n{line[end:]}"
    return line


def is_unanswered(line: str) -> bool:
    """Return whether a line has boxes, and none of them is ticked."""
    boxes = list(_BOX.finditer(line))
    return bool(boxes) and not any(map(_is_ticked, boxes))


def _is_ticked(box: re.Match[str]) -> bool:
    return any(box[name] for name in ("square", "round", "line", "ticked"))


def _ticked(line: str) -> str:
    boxes = list(_BOX.finditer(line))
    if not boxes:
        return line
    label = _LABEL.match(line, 0, boxes[0].start())
    is_led = bool(line[boxes[-1].end() :].strip())  # each box stands before its option
    bare = None if label else _BARE_LABEL.match(line, 0, boxes[0].start())
    if bare and (is_led or len(bare["gap"]) > 1):
        line = f"{bare[1]}:{line[bare.end(1) + 1 :]}"  # `LV function    (x) normal  ( ) reduced`
        label = _LABEL.match(line, 0, boxes[0].start())
    start = label.end() if label else 0
    options = _options(line, start, boxes)
    ticked = [span for span, box in zip(options, boxes, strict=True) if _is_ticked(box)]
    blank = re.sub(r"[^\n]", " ", line)
    if len(ticked) != 1 or any(":" in line[slice(*span)] for span in options):
        return blank
    (first, last) = ticked[0]
    return line[:start] + blank[start:first] + line[first:last] + blank[last:]


def _options(line: str, start: int, boxes: list[re.Match[str]]) -> list[tuple[int, int]]:
    """Return the span of the option of each box: the words behind it, or before it if a box ends the line."""
    if line[start : boxes[0].start()].strip() and not line[boxes[-1].end() :].strip():
        return list(
            zip([start, *(box.end() for box in boxes[:-1])], [box.start() for box in boxes], strict=True)
        )
    ends = [*(box.start() for box in boxes[1:]), len(line.rstrip("\n"))]
    return list(zip([box.end() for box in boxes], ends, strict=True))
