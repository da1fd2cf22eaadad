"""Forms: of a line of boxes only what is ticked is said; a line without one tick says nothing."""

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


def written_details(
    line: str, spans: Sequence[tuple[str, int, int]], boxes: Sequence[tuple[int, int, bool]]
) -> str | None:
    """Return the details of a line in their places; None where one of them is not understood."""
    letters = list(re.sub(r"[^\n]", " ", line))
    for name, start, end in spans:
        of_field = [box for box in boxes if start <= box[0] < end]
        if of_field:
            ticked = list(_chosen(line, name, start, of_field))
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


def _chosen(
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


_BOX = re.compile(
    r"\[\s*(?P<square>[xX✓✔√])?\s*\]|\(\s*(?P<round>[xX✓✔√•])?\s*\)|(?<!\w)_\s?(?P<line>[xX])\s?_(?!\w)"
    r"|(?<=\s)_(?=\s)|(?P<ticked>[☒☑🗹●◉⦿■])|[☐□○◯]"
)
_BARE_LABEL = re.compile(r"([ \t]*(?:\d+[.)]? )?[^\W\d_](?:[^:\n()\[\]]|\([A-Z]\w+\))*?)(?P<gap>[ \t]+)$")
_DENIED = re.compile(r"no|none|normal|absent|nil|n/?a|not \w+", re.IGNORECASE)
_ONE_GRADE = re.compile(r"(?:mild|slight|moderate|severe|mod|sev|mod-sev|mild-mod)", re.IGNORECASE)
_GRADED = re.compile(r"\s*(?:mild|slight|moderate|severe|mod|sev)[\w/-]*[ ](?=[a-z])", re.IGNORECASE)
_NUMBER = re.compile(r"\s*\d{1,3}(?:[.,]\d)?\s*%")
_MOTION = re.compile(r"motion|rwma|wma|kine", re.IGNORECASE)
_REGURGITATION = re.compile(r"\W*(?:[MTA]R|[MTA]I)\W*")
_LAYER = re.compile(r"\blayers?\b", re.IGNORECASE)  # `mid` is no level there
_SAM = re.compile(r"SAM/(?=LVOTO?\b)")
_KINESIS = {"hypo": "hypok", "a": "akin", "dys": "dysk"}
# An option, a wide gap and the label of another field, which names a structure or a finding of its own.
_FIELD = re.compile(
    r"(?P<option>[^\n]*?\S)[ ]*(?P<break>(?<=  ) |[\t|]) *(?=(?:LV|RV|LA|RA|LVEF|RVEF|left|right|LGE|late|T2"
    r"|STIR|o?edema|perfusion|effusion|pericard\w*|MR|TR|AR|mitral|tricuspid|aortic|atri\w*|thrombus|scar|RWMA)\b)",
    re.IGNORECASE,
)
_LABEL = re.compile(r"[^:\n]*:\s*")


def of_forms(text: str) -> str:
    """Blank out what the lines with boxes do not say; every letter that is left keeps its place."""
    return "".join(map(_with_details, _fields_apart(text).splitlines(keepends=True)))


def _with_details(line: str) -> str:
    """A line of boxes with the details behind its options; nothing where either is not understood."""
    boxes = [(*box.span(), _is_ticked(box)) for box in _BOX.finditer(line)]
    main, spans = details_apart(line)
    if not spans or not any(start < len(main) for start, _, _ in boxes):
        return _ticked(line)
    read, details = _ticked(main), written_details(line, spans, boxes)
    blank = re.sub(r"[^\n]", " ", line)
    if details is None or not read.strip():
        return blank
    if not details.strip(" ,\n"):
        return read + blank[len(read) :]
    label, _, option = read.rpartition(":")
    if _DENIED.match(option.strip()) or not option.strip():
        return blank
    if option.strip().lower() == "yes" and (_MOTION.search(label) or _REGURGITATION.fullmatch(label)):
        read = f"{label}:{' ' * len(option)}"  # `RWMA: (x) yes  where: akinesia of ...`
        details = details.replace(",", " ", 1)
    return read + details[len(read) :]


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
    if number := _NUMBER.match(line, start, boxes[0].start()):
        start = number.end()  # `LVEF: 64 %  (x) normal`
    options = _options(line, start, boxes)
    ticked = [span for span, box in zip(options, boxes, strict=True) if _is_ticked(box)]
    blank = re.sub(r"[^\n]", " ", line)
    is_of_layers = _LAYER.search(line, 0, boxes[0].start())
    if len(ticked) != 1 or is_of_layers or any(":" in line[slice(*span)] for span in options):
        return blank
    (first, last) = ticked[0]
    read = line[:start] + blank[start:first] + line[first:last] + blank[last:]
    if _DENIED.match(line[first:last].strip()):
        read = _SAM.sub("    ", read)  # both are of the outflow tract
    return _whole_option(line, read, ticked[0], options[-1])


def _whole_option(line: str, read: str, ticked: tuple[int, int], last: tuple[int, int]) -> str:
    """A line with the last option's noun, which is of all: `(x) mild ( ) moderate ( ) severe impairment`."""
    option = line[slice(*ticked)].strip()
    start = ticked[0] + len(line[slice(*ticked)]) - len(line[slice(*ticked)].lstrip())
    word = _KINESIS.get(option.lower(), "")
    if word and _MOTION.search(line, 0, ticked[0]) and start + len(word) <= len(line.rstrip("\n")):
        return f"{read[:start]}{word}{read[start + len(word) :]}"
    graded = _GRADED.match(line, *last) if _ONE_GRADE.fullmatch(option) and ticked != last else None
    return read if graded is None else read[: graded.end()] + line[graded.end() :]


def _options(line: str, start: int, boxes: list[re.Match[str]]) -> list[tuple[int, int]]:
    """Return the span of the option of each box: the words behind it, or before it if a box ends the line."""
    if line[start : boxes[0].start()].strip() and not line[boxes[-1].end() :].strip():
        return list(
            zip([start, *(box.end() for box in boxes[:-1])], [box.start() for box in boxes], strict=True)
        )
    ends = [*(box.start() for box in boxes[1:]), len(line.rstrip("\n"))]
    return list(zip([box.end() for box in boxes], ends, strict=True))
