"""Shorthand with one meaning: `LV/RV normal size`, `LV dilated?  No`, `EF: 65% [normal 57-77]`."""

import re
from collections.abc import Callable

_PLACES = (
    r"(?:basal|base|mid(?:ventricular)?|apical|apex|anterior|sept(?:al|um)|inferior|lateral"
    r"|(?:antero|infero)[- ]?(?:lateral|sept(?:al|um))|sub-?(?:endo|epi)(?:cardial)?|trans-?mural|mw"
    r"|walls?|levels?|segments?|layer|focal|segmental|patchy|linear|diffuse|regional|and|the|of|only)"
)
_STRUCTURE = (
    r"(?:lvot|(?:lv )?outflow(?: tract)?|(?:aortic|mitral|tricuspid)(?: valves?)?|valves?|[lr]a"
    r"|(?:left|right) atrium)"
)
_SIDE = re.compile(r"\b(?P<side>left|right)\b(?! (?:atri|ventric|sided|heart|valve))", re.IGNORECASE)


def _atria(line: re.Match[str]) -> str:
    """A line about atria, with the atrium of each side: `Atria: left enlarged, right normal`."""
    return _SIDE.sub(lambda match: f"{match['side'][0].upper()}A".ljust(len(match[0])), line[0])


_Words = str | Callable[[re.Match[str]], str]  # a template, or what makes the words; blanks fill up the rest
_NO_CASE = re.IGNORECASE
_RULES: tuple[tuple[str, int, _Words], ...] = (
    (r"\b(LV|RV|LA|RA)/(?=(?:LV|RV|LA|RA)\b)", _NO_CASE, r"\1&"),
    (r"\b(size)/(?=(?:fn|fxn|function)\b)", _NO_CASE, r"\1&"),
    (r"^([^?:\n]{2,60})\?(?=[ \t]+(?:yes|no)[ \t]*$)", _NO_CASE | re.M, r"\1:"),
    (r"^([^?:\n]{2,60})\?[ \t]N(?=[ \t]*$)", re.M, r"\1:no"),  # `RV normal? N`
    (r"^([^?:\n]{2,60})\?[ \t]Y(?=[ \t]*$)", re.M, r"\1: ʏ"),  # a letter that is no word, and has an alias
    (r"^([ \t]*)\[([A-Za-z][A-Za-z \d-]{1,40})\](?=[ \t]+\w|[ \t]*$)", re.M, r"\1 \2:"),
    (  # of two grades
        r"(?<![\w/])((?:mild|slight)(?:ly)?(?=/mod)|mod(?:erate(?:ly)?)?(?=/(?:severe|marked)))/(?=\w+(?!\s*/))",
        _NO_CASE,
        r"\1-",
    ),
    (r"(\b(?:effusion|pericard\w*|fluid)\b[^\n]*?\bnone)/trace\b", _NO_CASE, r"\1"),
    (r"\b(?:normal|regular)(?:ly)? (?:large|wide|width|calibre|dimensioned)\b", _NO_CASE, "normal size"),
    (r"\b([LR]) (V)\b(?!-)", 0, r"\1\2"),
    (  # also of a form or a row: `LV cavity   (x) normal`
        r"\b(LV|RV|(?:left|right) ventric(?:le|ular)) cavity"
        r"(?=:|[ \t]+[(\[☐☒]|(?:\t|[ ]*\||[ ]{2,})[ \t]*(?:normal|not|dilat|enlarg|mild|mod|sev|mark|gross))",
        _NO_CASE,
        r"\1 size",
    ),
    (  # `LV size (normal/mild/severe):`, and not `LVEDVi (ml/m2):`
        r"^([^:()\[\]\n]{2,40})[(\[](?=[^()\[\]\n]*[/|])[^()\[\]\n]*\b(?:normal|none|no|absent|yes|mild"
        r"|reduced|basal|focal|ant(?:erior)?|sub-?endo\w*)\b[^()\[\]\n]*[)\]](?=[ \t]*:)",
        _NO_CASE | re.M,
        r"\1",
    ),
    (r"[ \t]{2}Y ?/ ?\[N\](?=\s)", 0, ": no"),
    (r"[ \t]{2}\[Y\] ?/ ?N(?=\s)", 0, ": yes"),
    (  # `TV: nil TR`, and not `MR nil TR mild`
        r"((?:^|[:;,.|])[ \t]*)nil(?= (?:TR|MR|AR|SAM|RWMA|LGE|scar|o?edema|thrombus"
        r"|(?:pericardial )?(?:effusion|fluid))[ \t]*(?:$|[.,;|]))",
        _NO_CASE | re.M,
        r"\1no",
    ),
    (r"\b(unchanged|stable|constant|persistent) since (?:\w+ )?(?:19|20)\d\d\b", _NO_CASE, r"\1"),
    (r"^\W*atria\b(?:(?!ventric|valve)[^\n])*", _NO_CASE | re.M, _atria),
    (  # `RV N size`; a letter that is no word, and has an alias
        r"\bN(?= (?:[LR]V )?(?:size|vol|volume|fn|fxn|function)\b)|(?<=\b[LR][AV] )N(?=[,;.]|$)",
        re.M,
        "ɴ",
    ),
    (  # `T2 N`, `RVEF 52 N`; of a finding (`LGE N`) it may mean that there is none
        r"(\b(?:LV|RV|LA|RA|[Aa]tria|T2|STIR|[Ss]ize|[Vv]ol(?:umes?)?|[Ff]n|[Ff]unction|[Mm]otion|WM|[Tt]hickness"
        r"|(?:[LR]V)? ?EF:? \d\d ?%?)[:,]? )N(?=[ \t]*(?:[,;./)]|$))",
        re.M,
        r"\1ɴ",
    ),
    (  # `LGE + : apical lateral`
        rf"(?<=\bLGE)[ \t]*\+[ \t]*:?"
        rf"(?=(?:[ \t,&]|\b{_PLACES}\b)+(?:subendo|subepi|mid-?wall|transm)?[ \t.]*$)",
        re.M,
        lambda match: ":".rjust(len(match[0])),
    ),
    (r"(?<=\w)[ \t]*\.{4,}[ \t]*(?=\w)", 0, ":"),  # `RV size ........ normal`
    (r"^([A-Za-z][A-Za-z0-9_ ()]{1,30});([^;:\s][^;:\n]*);?(?=\r?$)", re.M, r"\1:\2"),  # `LV size;normal`
    (  # `LVOT / aortic valve: no jet`
        rf"^([^\w\n]*(?:\d+[^\w\n]+)?{_STRUCTURE})( ?)/( ?{_STRUCTURE}[ \t]*(?::|[ \t][-–][ \t]))",
        _NO_CASE | re.M,
        r"\1\2&\3",
    ),
    (rf"(?<=\w)([ \t]+)->(?=(?:[ \t,&+]|\b{_PLACES}\b)+$)", _NO_CASE | re.M, r",\1"),
    (r"\b(?:thin|fine|thick)(?= (?:line|stripe|streak|stria|strip|band)s?\b)", _NO_CASE, ""),  # no wall
    (  # `LAD infarct`, which names no wall
        r"\b(?:(?:distal|proximal|mid) )?(?:LAD|LCx|RCx|RCA|(?:left )?circumflex|right coronary)"
        r"(?:/(?:LAD|LCx|RCx|RCA))*(?: territory)?(?= (?:infarct(?:ion)?s?|scar|MI)\b)",
        _NO_CASE,
        "",
    ),
    (r"(?<=\bno )e/o\b", _NO_CASE, ""),
    (r"\[\s*(?:normal|ref(?:erence)?|nr|range)\b[^\]\n]*\d[^\]\n]*\]", _NO_CASE, ""),
    (  # of another time, `(prior 2020: 33 %, moderately reduced)`, `(61 % before)`; or `(no change)`
        r"\((?:(?:no change|unchanged|stable|as before)"
        r"|(?=[^()\n]*\d|[^()\n]*\b(?:mild|moderate|severe|normal|dilated|reduced|enlarged))"
        r"(?![^()\n]*\b(?:now|today|current\w*|still|unchanged|again)\b)"
        r"(?:(?:prior|previous|previously|formerly|was|last|earlier|before)\b[^()\n]+"
        r"|(?:in )?(?:19|20)\d\d\s*:[^()\n]+"
        r"|[^()\n]+\b(?:before|previously|earlier)))\)",
        _NO_CASE,
        "",
    ),
    (r"\((?:choose|select|options?|if (?:yes|present|so))\b[^()\n]*\)", _NO_CASE, ""),
)


def _writer(words: _Words) -> Callable[[re.Match[str]], str]:
    """Return what writes the words of a rule in the place of a match, as long as it."""

    def spelled(match: re.Match[str]) -> str:
        return (match.expand(words) if isinstance(words, str) else words(match)).ljust(len(match[0]))

    return spelled


_SPELLED = [(re.compile(pattern, flags), _writer(words)) for pattern, flags, words in _RULES]


def of_shorthand(text: str) -> str:
    """Spell out a text's shorthand; every letter that is left keeps its place."""
    for pattern, spelled in _SPELLED:
        text = pattern.sub(spelled, text)
    return text
