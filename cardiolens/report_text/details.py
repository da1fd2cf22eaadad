"""Details: lines below a finding that give its level, wall or layer go on with it: `Level: mid, apical`."""

import re

_NAMES = r"(?:levels?|walls?|layers?|locations?|where|sites?|distribution|pattern|extent|segments?)"
PLACES = (
    r"(?:basal|base|mid(?:ventricular)?|apical|apex|anterior|sept(?:al|um)|inferior|lateral"
    r"|(?:antero|infero)[- ]?(?:lateral|sept(?:al|um))|sub-?(?:endo|epi)(?:cardial)?|trans-?mural|mw"
    r"|walls?|levels?|segments?|layer|focal|segmental|patchy|linear|diffuse|regional|and|the|of|only)"
)
_DETAIL = re.compile(
    rf"(?<=[^\n.,;:])(?P<mark>[.,;]?)\n(?P<label>[ \t]*[-*•]?[ \t]*{_NAMES}(?:[ \t]*:|[ \t]{{3,}}))"
    r"(?P<value>[^\n:]*)(?=\n|\Z)",
    re.IGNORECASE,
)
_VALUE = re.compile(rf"(?:[\s,&+.–-]|\b{PLACES}\b)+", re.IGNORECASE)
_NOTHING = re.compile(r"\W*(?:none|nil|no|n/?a|not applicable|not assessed)?\W*", re.IGNORECASE)


def of_details(text: str) -> str:
    """Join such lines to the one above them; every letter that is left keeps its place."""
    return _DETAIL.sub(_joined, text)


def _joined(match: re.Match[str]) -> str:
    """The end of the line above and a place behind a comma; nothing where the line says nothing."""
    if _NOTHING.fullmatch(match["value"]):
        return match["mark"].ljust(len(match[0]))
    if not _VALUE.fullmatch(match["value"]):
        return match[0]
    return f",{' ' * len(match['mark'] + match['label'])}{match['value']}"
