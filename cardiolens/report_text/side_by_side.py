"""Two reports side by side: lines that say of one label two things, and whose columns have no head."""

import re
from collections.abc import Iterator

_LABEL = re.compile(r"(?:^|(?<=\s\s)|(?<=\t)|(?<=\|))[ ]*([A-Za-z][\w /()-]{0,30}?)[ ]*:")
_GAP = re.compile(r"\S(?: {3,}|\s*\t\s*|\s*\|\s*)\S")


def of_columns_without_head(text: str) -> str:
    """Blank out such lines, and all others of two columns beside them: which one is of today is not told."""
    lines = text.splitlines(keepends=True)
    if not any(map(_is_doubled, lines)):
        return text
    return "".join(re.sub(r"[^\n]", " ", line) if _GAP.search(line.strip()) else line for line in lines)


def _is_doubled(line: str) -> bool:
    labels = list(_labels(line))
    return len(set(labels)) < len(labels)


def _labels(line: str) -> Iterator[str]:
    return (match[1].strip().lower() for match in _LABEL.finditer(line))
