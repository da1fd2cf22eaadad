"""Filled-in fields of templates: brackets around the words that were chosen stand for those words.

A field that still shows its choices, its prompt or nothing, and a bracket that no field is due at, stay as
they are: the whole sentence is then in doubt.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

_FIELD = re.compile(
    r"\[(?P<square>[^][\n]*)\]|\{(?P<curly>[^{}\n]*)\}|<(?P<angle>[A-Za-z][^<>\n]*)>"
    r"|\*{3}(?P<stars>[^*\n]+)\*{3}|(?<!\w)_{2,3}(?P<line>[^_\n]+)_{2,3}(?!\w)"
)
_MARKS = re.compile(r"[][{}]|\*{3}|__|<(?=[A-Za-z])|(?<=[A-Za-z])>")
# What a field is due behind; behind a value a bracket may be a range, a comparison or a remark.
_CALLS = re.compile(
    r"(?:\b(?:is|are|shows?|has|have|with|of|at|measures|index|ejection fraction|[LR]?V?EF|[LR]?V?EDVi?)"
    r"|[:=])\s*$",
    re.IGNORECASE,
)
_UNIT = r"(?:%|m[lL]/m2|m[lL]/m²|mm|cm2?|m[lL]|g/m2|ms|m/s)"
_STOP = re.compile(r"\.[ \t]+(?=\S)")
_ARTERY = r"(?:LAD|LCx|RCx|LCX|RCA|Cx|LMS)"
_SLASHED = re.compile(rf"{_UNIT}|{_ARTERY}(?:/{_ARTERY})+")
_CHOICE = re.compile(  # also of two grades that were joined by another grammar: `[mildly-moderately]`
    r"[/|\\?*_]|\b(?:or|and/or)\b|[<>](?!\s*\d)|\.{2}|…|\bx\W*$|^\W*x\b|[✓✔√☒☑]"
    r"|\b(?:mild|slight|mod)\w*-(?:mod|sev|mark)",
    re.IGNORECASE,
)
_PROMPT = re.compile(
    r"\b(?:select\w*|choose|pick|enter|insert|fill|specify|describe|free[- ]?text|text|type|value|number|list"
    r"|options?|default|drop-?down|delete|comments?|grade|severity|etc|x{2,}|tb[ad]|yes no|if|template|sic"
    r"|corrected|deleted|redacted|name|date)\b",
    re.IGNORECASE,
)
_OF_OTHER = re.compile(  # a comparison, or what is normal
    r"\b(?:prior|prev\w*|last|was|were|before|formerly|compar\w*|ref\w*|range|norms?|nl|vs|versus|(?:19|20)\d\d)\b"
    r"|^\W*\d[\d.]*\s*(?:-|–|to)\s*\d[\d.]*\W*$|:\s*\d+\s*$|^\W*[<>≤≥]",
    re.IGNORECASE,
)
_NEGATION_ALONE = re.compile(r"\W*(?:no|not|non|without)?\W*", re.IGNORECASE)
_ONE_LETTER = re.compile(r"\W*[^\W\d]\W*")
_GRADE = re.compile(
    r"\s*(?:none|nil|no|yes|absent|present|normal|abnormal|trace|trivial|minimal|small|mild(?:ly)?|moderate(?:ly)?"
    r"|severe(?:ly)?|large|reduced|preserved|impaired|dilated|enlarged|thin\w*|thick\w*|increased|decreased"
    r"|hypokine\w+|akine\w+|dyskine\w+)\s*",
    re.IGNORECASE,
)
_LIST = re.compile(r"[,;]|\band\b")
_NEXT = re.compile(
    r"\s+[^\W\d_][^:=.;,\n\]\[{}<>*_]{0,40}[:=]\s*(?:[\[{<]|\*{3}|_{2})"
)  # a further field of a line
_SAYS_SO = re.compile(
    r"^(\s*(?:present|yes|abnormal|positive|increased|reduced|thickened))\s*:", re.IGNORECASE
)


def of_filled_fields(text: str) -> str:
    """Blank out the brackets of filled-in fields; every letter that is left keeps its place."""
    if not _MARKS.search(text):
        return text
    return "".join(map(_line, text.splitlines(keepends=True)))


def _line(line: str) -> str:
    """A line, its sentences read one by one; nothing if one of its fields still says what to write."""
    if any(_PROMPT.search(_content(field)) for field in _FIELD.finditer(line)):
        return _blank(line)
    return "".join(map(_sentence, _sentences(line)))


def _blank(line: str) -> str:
    return re.sub(r"[^\n]", " ", line)


def _sentences(line: str) -> Iterator[str]:
    """Yield the sentences of a line; a stop within a field ends none."""
    fields = [match.span() for match in _FIELD.finditer(line)]
    start = 0
    for stop in _STOP.finditer(line):
        if not any(first < stop.start() < last for first, last in fields):
            yield line[start : stop.end()]
            start = stop.end()
    yield line[start:]


def _sentence(line: str) -> str:
    """A sentence with all fields filled in, without their brackets.

    Nothing where a field still holds several words to choose from; any other sentence is as it is.
    """
    fields = list(_FIELD.finditer(line))
    are_apart = all(any(map(str.isalpha, line[one.end() : other.start()])) for one, other in pairwise(fields))
    # A legend behind a label shows its words for all: `LGE [absent | present]: absent`.
    chosen = [field for field in fields if not line[field.end() :].lstrip().startswith(":")]
    if not are_apart or any(_is_choice(_content(field)) for field in chosen):
        return line if _are_boxes(fields) else _blank(line)
    if not fields or not all(_is_filled(field) and _CALLS.search(line, 0, field.start()) for field in fields):
        return line
    written = _FIELD.sub(_words, line)
    return line if _MARKS.search(written) else written


def _content(field: re.Match[str]) -> str:
    return next(words for words in field.groups() if words is not None)


def _are_boxes(fields: Sequence[re.Match[str]]) -> bool:
    """Return whether fields are boxes to tick, which hold no word."""
    return any(len(_content(field).strip()) < 2 for field in fields)


def _is_choice(words: str) -> bool:
    """Return whether a field holds several grades or words: `[normal/dilated]`, `[mild, moderate]`."""
    n_words = len(re.findall(r"[^\W\d_]{3,}", words))
    n_grades = sum(_GRADE.fullmatch(part) is not None for part in _LIST.split(words))
    return n_grades > 1 or (n_words > 1 and _CHOICE.search(_SLASHED.sub(" ", words)) is not None)


def _is_filled(field: re.Match[str]) -> bool:
    """Return whether a field holds what was chosen, and only that."""
    words = _content(field)
    bare = _SLASHED.sub(" ", words)
    grades = [part for part in _LIST.split(words) if _GRADE.fullmatch(part)]
    is_open = _NEGATION_ALONE.fullmatch(words) or _ONE_LETTER.fullmatch(words) or len(grades) > 1
    return not is_open and not any(open_.search(bare) for open_ in (_CHOICE, _PROMPT, _OF_OTHER))


def _words(field: re.Match[str]) -> str:
    """The words of a field in their places: `[present: septal]` is present, septal.

    A stop stands before a further field, which is of something else: `LA: [enlarged]  RA: [normal]`.
    """
    words = _SAYS_SO.sub(lambda match: match[1].ljust(len(match[0]) - 1) + ",", _content(field))
    lead = field[0].index(_content(field))
    stop = "." if _NEXT.match(field.string, field.end()) else " "
    return f"{' ' * lead}{words}".ljust(len(field[0]) - 1) + stop
