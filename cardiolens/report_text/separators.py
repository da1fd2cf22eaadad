"""Separators: slashes, bars and gaps between statements, or between a number and the word for it."""

import re
from itertools import combinations

# What a statement names first. A part that names none of these may be an option of the one before it.
_SUBJECTS = {
    "lv": r"lv|left ventric\w*",
    "rv": r"rv|right ventric\w*",
    "la": r"la|left atri\w*",
    "ra": r"ra|right atri\w*",
    "lvef": r"lv-?ef",
    "rvef": r"rv-?ef",
    "motion": r"rwmas?|wma|wall motion",
    "lge": r"lge|late (?:gadolinium )?enhancement|scar",
    "oedema": r"o?edema",
    "t2": r"t2|stir",
    "perfusion": r"perfusion",
    "effusion": r"(?:pericardial )?(?:effusion|fluid)|pericardium",
    "mr": r"mr|mitral",
    "tr": r"tr|tricuspid",
    "ar": r"ar|aortic",
    "atria": r"atria",
    "thrombus": r"thrombus",
}
_TRAITS = {
    "size": r"size|volumes?|dilat\w*|cavity",
    "function": r"function|fn|ef",
    "walls": r"walls?|thickness|hypertrophy",
}
_OPENS = re.compile(rf"[\s\-*•]*(?:no |normal )?(?:{'|'.join(_SUBJECTS.values())})(?![\w/])", re.IGNORECASE)
_NAMED = {
    name: re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for name, words in (_SUBJECTS | _TRAITS).items()
}
_SAYS = re.compile(
    r"\b(?:normal\w*|none|nil|no|not|absent|negative|neg|mild\w*|moderate\w*|severe\w*"
    r"|dilated|enlarged|reduced|impaired|preserved|present|good"
    r"|trivial|trace|intact|unremarkable|small|large|\d+ ?%)(?!\w)",
    re.IGNORECASE,
)
_SLASH = re.compile(r"(?<=\S) +(?P<mark>/|\|) +(?=\S)| +(?P<last>/)(?=\s*$)")
_TURNS = re.compile(
    r"\b(?:or|if|vs|versus|prior|prev\w*|last|was|were|then|now|today|either|circle|delete)\b", re.IGNORECASE
)
_GRADED = re.compile(  # `LVEF 55 % / normal`, and nothing behind it that may be a limit or a time
    r"(?P<number>\d(?:[.,]\d)?\s*(?:%|m[lL]/m2)\s*)/"
    r"(?P<word>\s*(?:(?:mild|moderate|severe|slight|marked)(?:ly)? )?"
    r"(?:normal|preserved|reduced|impaired|decreased|dilated|enlarged|increased)(?=\s*(?:$|[.,;])))",
    re.IGNORECASE | re.MULTILINE,
)
_FIELD = re.compile(
    r"(?<=\S) +(?P<break> )(?=(?P<label>[A-Za-z][\w /-]{0,28}):)|(?P<tab>\t)(?=[A-Za-z][\w /-]{0,28}:)"
)


def of_separators(text: str) -> str:
    """Put every statement of a line that holds several into one of its own; the text keeps its length."""
    return "".join(map(_line, text.splitlines(keepends=True)))


def _line(line: str) -> str:
    line = _GRADED.sub(lambda match: f"{match['number']},{match['word']}", line)
    marks = list(_SLASH.finditer(line))
    if marks and _are_statements(_SLASH.sub("\n", line.strip()).split("\n")) and not _TURNS.search(line):
        line = _SLASH.sub(_stop, line)
    fields = list(_FIELD.finditer(line))
    starts = [0, *(match.end() for match in fields)]
    parts = [line[start:end] for start, end in zip(starts, [*starts[1:], len(line)], strict=True)]
    if fields and all(":" in part for part in parts) and _are_statements(parts) and not _TURNS.search(line):
        line = "".join(f"{part[:-1]}\n" for part in parts[:-1]) + parts[-1]
    return line


def _stop(match: re.Match[str]) -> str:
    """The end of a sentence in the place of a mark."""
    place = match.start("mark" if match["mark"] else "last") - match.start()
    return ".".rjust(place + 1).ljust(len(match[0]))


def _are_statements(parts: list[str]) -> bool:
    """Return whether each part names a subject, says something, and is no other option of another part."""
    parts = [part for part in parts if part.strip()]
    subjects = [{name for name, words in _NAMED.items() if words.search(part)} for part in parts]
    is_each = all(_OPENS.match(part) and _SAYS.search(part) for part in parts)
    return is_each and not any(one <= other or other <= one for one, other in combinations(subjects, 2))
