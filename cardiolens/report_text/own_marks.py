"""Marks of a form that its own legend explains: below `tick = V`, `LGE:  V no  - yes` has two boxes."""

import re

_LEGEND = re.compile(
    r"\b(?:tick(?:ed)?|mark(?:ed)?|chosen|selected|yes)\s*=\s*(?P<behind>[VvXx+*#])(?!\w)"
    r"|(?<!\S)(?P<before>[VvXx+*#])\s*=\s*(?:tick(?:ed)?|yes|chosen|selected|applies)\b",
    re.IGNORECASE,
)
_EMPTY = re.compile(r"(?<=[:\s])-(?= \S)")
_FIELD = re.compile(r"[^\W\d_][^:\n]*:\s")


def of_own_marks(text: str) -> str:
    """Write boxes for the marks of a legend in lines with a label and two options; each keeps its place."""
    legend = _LEGEND.search(text)
    if legend is None:
        return text
    mark = legend["behind"] or legend["before"]
    ticked = re.compile(rf"(?<=[:\s]){re.escape(mark)}(?= \S)")
    head, body = text[: legend.end()], text[legend.end() :]
    return head + "".join(_line(line, ticked) for line in body.splitlines(keepends=True))


def _line(line: str, ticked: re.Pattern[str]) -> str:
    n_options = len(ticked.findall(line)) + len(_EMPTY.findall(line))
    if not _FIELD.match(line) or not ticked.search(line) or n_options < 2:
        return line
    return _EMPTY.sub("□", ticked.sub("■", line))
