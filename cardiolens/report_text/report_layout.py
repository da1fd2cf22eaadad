"""Layouts of reports: forms and tables become sentences, letter by letter in their places."""

import functools
import re

from cardiolens.report_text.filled_fields import of_filled_fields
from cardiolens.report_text.forms import of_forms
from cardiolens.report_text.shorthand import of_shorthand
from cardiolens.report_text.table_rows import of_rows

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


class _Plain(str):
    """A text after its layout was read; a second reading could take what was left in doubt for a sentence."""

    __slots__ = ()


def plain(text: str) -> str:
    """Return a text of the same length in which every line is a sentence, or blank where it says nothing."""
    return text if isinstance(text, _Plain) else _plain(text)


@functools.lru_cache(maxsize=64)
def _plain(text: str) -> _Plain:
    return _Plain(of_rows(of_forms(of_shorthand(of_filled_fields(of_own_marks(text))))))
