"""Terse pairs of notes: `RV N/N` is normal in size and function, `mid/basal` is of both levels."""

import re

_NORMAL_TWICE = re.compile(  # a letter that is no word, and has an alias
    r"(?P<side>\b[LR]V:? )(?P<pair>(?P<one>N|n|nl|NL)/(?P=one))(?=[ \t]*(?:[.,;]|$))", re.MULTILINE
)
_LEVEL = r"(?:basal|mid|apical|apic)"
_LEVELS = re.compile(  # of a place; three levels, or those behind a label of levels, are options
    rf"(?<![\w/?])(?P<one>{_LEVEL})/(?P<other>{_LEVEL}|apex)(?![\w/?])", re.IGNORECASE
)
_OPTIONS = re.compile(r"\blevels?\b|[\[\]☐☒☑?]|\( ?[xX✓]? ?\)", re.IGNORECASE)
_INDEXED = re.compile(  # of the volume that a word grades: `LV sev dil 155/m2`, `LV 74/m2 N`
    r"(?P<graded>\b[LR]V (?:(?:mild|mod|sev)\w* )?(?:dil|dilated|enl|enlarged) )(?P<behind>\d{2,3}/m2)"
    r"(?=[ \t]*(?:[.,;]|$))|(?P<side>\b[LR]V )(?P<before>\d{2,3}/m2)(?= N(?:[.,;]|$))",
    re.MULTILINE,
)
_SIZE_AND_SHARE = re.compile(  # `LV N size EF 57 N`
    r"(?:(?<=\bsize)|(?<=\bvol)|(?<=\bnl)|(?<=\bdil)) (?=EF:? \d\d\b(?! ?(?:-|to|m)))"
)
_VALVES = re.compile(  # a row on two valves, both of which it calls normal
    r"^(?P<lead>[ \t|]*)(?P<first>MV|LVOT)/(?P<second>TV|AV)(?=(?P<row>[ \t]*[|:][^\n]*)$)", re.MULTILINE
)
_DENIES = re.compile(r"\b(?:no|nil|none|normal|without)\b", re.IGNORECASE)
_GRADES = re.compile(
    r"\b(?:trace|trivial|mild|mod|sev|moderate|severe|present|yes|stenosis|either|other|but|except)\w*|[/?+]",
    re.IGNORECASE,
)


def of_terse_pairs(text: str) -> str:
    """Spell out what such pairs are of; every letter that is left keeps its place."""
    text = _NORMAL_TWICE.sub(lambda match: f"{match['side']}{'ꜱ'.ljust(len(match['pair']))}", text)
    text = _INDEXED.sub(_volume, text)
    text = _SIZE_AND_SHARE.sub(",", text)
    text = _VALVES.sub(_both_valves, text)
    return "".join(map(_with_levels, text.splitlines(keepends=True)))


def _with_levels(line: str) -> str:
    return line if _OPTIONS.search(line) else _LEVELS.sub(r"\g<one>&\g<other>", line)


def _volume(match: re.Match[str]) -> str:
    """The word for a volume, without its number, which leaves out half of its unit."""
    if match["graded"]:
        return match["graded"] + " " * len(match["behind"])
    return match["side"] + "size".ljust(len(match["before"]))


def _both_valves(match: re.Match[str]) -> str:
    is_denied = _DENIES.search(match["row"]) and not _GRADES.search(match["row"])
    return f"{match['lead']}{match['first']}{'&' if is_denied else '/'}{match['second']}"
