"""Shorthand with one meaning: `LV/RV normal size`, `LV dilated?  No`, `EF: 65% [normal 57-77]`."""

import re

PLACES = (
    r"(?:basal|base|mid(?:ventricular)?|apical|apex|anterior|sept(?:al|um)|inferior|lateral"
    r"|(?:antero|infero)[- ]?(?:lateral|sept(?:al|um))|sub-?(?:endo|epi)(?:cardial)?|trans-?mural|mw"
    r"|walls?|levels?|segments?|layer|focal|segmental|patchy|linear|diffuse|regional|and|the|of|only)"
)
_PAIR = re.compile(
    r"\b(?P<first>LV|RV|LA|RA|size)/(?=(?P<second>LV|RV|LA|RA|fn|fxn|function)\b)", re.IGNORECASE
)
_ANSWERED = re.compile(
    r"^(?P<question>[^?:\n]{2,60})\?(?=[ \t]+(?:yes|no)[ \t]*$)", re.IGNORECASE | re.MULTILINE
)
_LETTERED = re.compile(
    r"^(?P<question>[^?:\n]{2,60})\?[ \t](?P<answer>[YN])(?=[ \t]*$)", re.MULTILINE
)  # `RV normal? Y`
_BRACKETED_LABEL = re.compile(
    r"^(?P<gap>[ \t]*)\[(?P<label>[A-Za-z][A-Za-z \d-]{1,40})\](?=[ \t]+\w|[ \t]*$)", re.MULTILINE
)
_RANGE = re.compile(  # of two grades
    r"(?<![\w/])(?P<low>(?:mild|slight)(?:ly)?(?=/mod)|mod(?:erate(?:ly)?)?(?=/(?:severe|marked)))/(?=\w+(?!\s*/))",
    re.IGNORECASE,
)
_TRACE = re.compile(r"(?P<label>\b(?:effusion|pericard\w*|fluid)\b[^\n]*?\bnone)/trace\b", re.IGNORECASE)
_SIZED = re.compile(
    r"\b(?P<normal>(?:normal|regular)(?:ly)? )(?:large|wide|width|calibre|dimensioned)\b", re.IGNORECASE
)
_SPACED = re.compile(r"\b(?P<side>[LR]) (?P<chamber>V)\b(?!-)")
_CAVITY = re.compile(  # also of a form or a row: `LV cavity   (x) normal`
    r"\b(?P<side>LV|RV|(?:left|right) ventric(?:le|ular)) cavity"
    r"(?=:|[ \t]+[(\[☐☒]|(?:\t|[ ]*\||[ ]{2,})[ \t]*(?:normal|not|dilat|enlarg|mild|mod|sev|mark|gross))",
    re.IGNORECASE,
)
_LEGEND = re.compile(  # `LV size (normal/mild/severe):`, and not `LVEDVi (ml/m2):`
    r"^(?P<label>[^:()\[\]\n]{2,40})[(\[](?=[^()\[\]\n]*[/|])[^()\[\]\n]*\b(?:normal|none|no|absent|yes|mild"
    r"|reduced|basal|focal|ant(?:erior)?|sub-?endo\w*)\b[^()\[\]\n]*[)\]](?=[ \t]*:)",
    re.IGNORECASE | re.MULTILINE,
)
_CHOSEN = re.compile(r"[ \t]{2}(?:Y ?/ ?\[N\](?P<no>)|\[Y\] ?/ ?N)(?=\s)")  # of `Y / [N]`
_SINCE = re.compile(
    r"\b(?P<still>unchanged|stable|constant|persistent)(?P<since> since (?:\w+ )?(?:19|20)\d\d)\b",
    re.IGNORECASE,
)
_ATRIA = re.compile(r"^\W*atria\b(?:(?!ventric|valve)[^\n])*", re.IGNORECASE | re.MULTILINE)
_SIDE = re.compile(r"\b(?P<side>left|right)\b(?! (?:atri|ventric|sided|heart|valve))", re.IGNORECASE)
_LEADER = re.compile(r"(?<=\w)(?P<dots>[ \t]*\.{4,}[ \t]*)(?=\w)")  # `RV size ........ normal`
_FIELDS = re.compile(  # `LV size;normal`
    r"^(?P<label>[A-Za-z][A-Za-z0-9_ ()]{1,30});(?P<value>[^;:\s][^;:\n]*);?(?=\r?$)", re.MULTILINE
)
_NORMAL = re.compile(
    r"\bN(?= (?:[LR]V )?(?:size|vol|volume|fn|fxn|function)\b)|(?<=\b[LR][AV] )N(?=[,;.]|$)", re.MULTILINE
)  # `RV N size`
_LEGEND_BEHIND = re.compile(r"\((?:choose|select|options?|if (?:yes|present|so))\b[^()\n]*\)", re.IGNORECASE)
_STRUCTURE = (
    r"(?:lvot|(?:lv )?outflow(?: tract)?|(?:aortic|mitral|tricuspid)(?: valves?)?|valves?|[lr]a"
    r"|(?:left|right) atrium)"
)
_LABEL_PAIR = re.compile(  # `LVOT / aortic valve: no jet`
    rf"^(?P<first>[^\w\n]*(?:\d+[^\w\n]+)?{_STRUCTURE})(?P<gap> ?)/"
    rf"(?P<second> ?{_STRUCTURE}[ \t]*(?::|[ \t][-–][ \t]))",
    re.IGNORECASE | re.MULTILINE,
)
# A bracket of another time, `(prior 2020: 33 %, moderately reduced)`, `(61 % before)`; or `(no change)`.
_PAST = re.compile(
    r"\((?:(?:no change|unchanged|stable|as before)"
    r"|(?=[^()\n]*\d|[^()\n]*\b(?:mild|moderate|severe|normal|dilated|reduced|enlarged))"
    r"(?![^()\n]*\b(?:now|today|current\w*|still|unchanged|again)\b)"
    r"(?:(?:prior|previous|previously|formerly|was|last|earlier|before)\b[^()\n]+"
    r"|(?:in )?(?:19|20)\d\d\s*:[^()\n]+"
    r"|[^()\n]+\b(?:before|previously|earlier)))\)",
    re.IGNORECASE,
)
_PLACED = re.compile(
    rf"(?<=\w)(?P<gap>[ \t]+)->(?=(?:[ \t,&+]|\b{PLACES}\b)+$)", re.IGNORECASE | re.MULTILINE
)
_THIN_LINE = re.compile(
    r"\b(?:thin|fine|thick)(?= (?:line|stripe|streak|stria|strip|band)s?\b)", re.IGNORECASE
)  # no wall
_OF_ARTERY = re.compile(  # `LAD infarct`, which names no wall
    r"\b(?:(?:distal|proximal|mid) )?(?:LAD|LCx|RCx|RCA|(?:left )?circumflex|right coronary)"
    r"(?:/(?:LAD|LCx|RCx|RCA))*(?: territory)?"
    r"(?= (?:infarct(?:ion)?s?|scar|MI)\b)",
    re.IGNORECASE,
)
_EVIDENCE = re.compile(r"(?<=\bno )e/o\b", re.IGNORECASE)
_NORMAL_RANGE = re.compile(r"\[\s*(?:normal|ref(?:erence)?|nr|range)\b[^\]\n]*\d[^\]\n]*\]", re.IGNORECASE)


_NIL = re.compile(  # `TV: nil TR`, and not `MR nil TR mild`
    r"(?P<lead>(?:^|[:;,.|])[ \t]*)nil(?= (?:TR|MR|AR|SAM|RWMA|LGE|scar|o?edema|thrombus"
    r"|(?:pericardial )?(?:effusion|fluid))[ \t]*(?:$|[.,;|]))",
    re.IGNORECASE | re.MULTILINE,
)
_NORMAL_BEHIND = re.compile(  # `T2 N`, `RVEF 52 N`; of a finding (`LGE N`) it may mean that there is none
    r"(?P<named>\b(?:LV|RV|LA|RA|[Aa]tria|T2|STIR|[Ss]ize|[Vv]ol(?:umes?)?|[Ff]n|[Ff]unction|[Mm]otion|WM|[Tt]hickness"
    r"|(?:[LR]V)? ?EF:? \d\d ?%?)[:,]? )N(?=[ \t]*(?:[,;./)]|$))",
    re.MULTILINE,
)
_SIGNED = re.compile(  # `LGE + : apical lateral`
    rf"(?<=\bLGE)(?P<sign>[ \t]*\+[ \t]*:?)"
    rf"(?=(?:[ \t,&]|\b{PLACES}\b)+(?:subendo|subepi|mid-?wall|transm)?[ \t.]*$)",
    re.MULTILINE,
)


def of_shorthand(text: str) -> str:
    """Spell out a text's shorthand; every letter that is left keeps its place."""
    text = _PAIR.sub(_pair, text)
    text = _ANSWERED.sub(lambda match: f"{match['question']}:", text)
    text = _LETTERED.sub(
        lambda match: f"{match['question']}{':no' if match['answer'] == 'N' else ': ʏ'}", text
    )
    text = _BRACKETED_LABEL.sub(lambda match: f"{match['gap']} {match['label']}:", text)
    text = _RANGE.sub(lambda match: f"{match['low']}-", text)
    text = _TRACE.sub(lambda match: match["label"].ljust(len(match[0])), text)
    text = _SIZED.sub(lambda match: "normal size".ljust(len(match[0])), text)
    text = _SPACED.sub(lambda match: f"{match['side']}{match['chamber']} ", text)
    text = _CAVITY.sub(lambda match: f"{match['side']} size  ", text)
    text = _LEGEND.sub(lambda match: match["label"].ljust(len(match[0])), text)
    text = _CHOSEN.sub(
        lambda match: (": no" if match["no"] is not None else ": yes").ljust(len(match[0])), text
    )
    text = _NIL.sub(lambda match: f"{match['lead']}no ", text)
    text = _SINCE.sub(lambda match: match["still"].ljust(len(match[0])), text)
    text = _ATRIA.sub(lambda line: _SIDE.sub(_atrium, line[0]), text)
    text = _NORMAL.sub("ɴ", text)  # a letter that is no word, and has an alias
    text = _NORMAL_BEHIND.sub(lambda match: f"{match['named']}ɴ", text)
    text = _SIGNED.sub(lambda match: ":".rjust(len(match["sign"])), text)
    text = _LEADER.sub(lambda match: ":".ljust(len(match["dots"])), text)
    text = _FIELDS.sub(lambda match: f"{match['label']}:{match['value']}".ljust(len(match[0])), text)
    text = _LABEL_PAIR.sub(lambda match: f"{match['first']}{match['gap']}&{match['second']}", text)
    text = _PLACED.sub(lambda match: f",{match['gap']} ", text)
    for blank in (_THIN_LINE, _OF_ARTERY, _EVIDENCE, _NORMAL_RANGE, _PAST, _LEGEND_BEHIND):
        text = blank.sub(lambda match: " " * len(match[0]), text)
    return text


def _atrium(match: re.Match[str]) -> str:
    """The atrium of a side, on a line about atria: `Atria: left enlarged, right normal`."""
    return f"{match['side'][0].upper()}A".ljust(len(match[0]))


def _pair(match: re.Match[str]) -> str:
    """Both of two structures, or of a size and a function; not a size and a structure."""
    is_size = match["first"].lower() == "size"
    is_function = match["second"].lower() in {"fn", "fxn", "function"}
    return f"{match['first']}&" if is_size == is_function else match[0]
