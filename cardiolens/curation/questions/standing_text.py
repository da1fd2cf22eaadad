"""Standing text: sentences of an addendum which say that the report, or the rest of it, stays as it is."""

import re
from enum import StrEnum


class Stands(StrEnum):
    """What a sentence leaves as it is."""

    WHOLE = "whole"  # `Cardiac findings stand`
    REST = "rest"  # `No other change`


_TEXT = (
    r"(?:reports?|findings?|conclusions?|impressions?|interpretation|statements?|grad(?:es|ing)|results?|text"
    r"|(?:main )?body of (?:the )?report|measurements?|values?)"
)
_OF_REPORT = r"(?: (?:of|in|above|to) (?:the )?(?:\w+ )?(?:report|text|findings?))?"
_KEPT = (
    r"(?:stands?|(?:is|are|remains?|was|were|has|have)(?: therefore| hence| otherwise| all)? "
    r"(?:unchanged|unaltered|unaffected|valid|not (?:been )?(?:altered|changed|affected|modified)"
    r"|as (?:before|reported|stated|issued|dictated|given(?: above)?))"
    r"|(?:not (?:altered|changed|affected)|unchanged|unaltered|unaffected|as before|as reported))"
)
_OTHER = r"(?:other|remaining|further)"
_REST = re.compile(
    rf"(?:all |the )*{_OTHER} (?:\w+ )?{_TEXT}{_OF_REPORT} {_KEPT}"
    rf"|(?:the )?(?:rest|remainder){_OF_REPORT} {_KEPT}"
    rf"|(?:everything|all) else {_KEPT}"
    rf"|(?:the )?(?:\w+ )?{_TEXT} otherwise {_KEPT}|otherwise {_KEPT}"
    rf"|no {_OTHER} changes?(?: (?:to|in|of) (?:the )?(?:\w+ )?(?:report|text|{_TEXT}))?",
    re.IGNORECASE,
)
_WHOLE = re.compile(
    rf"(?:the )?(?:cardiac |above |original |main )*{_TEXT}{_OF_REPORT} {_KEPT}"
    r"|no changes? (?:to|in|of) (?:the )?(?:cardiac |above |original )*"
    r"(?:reports?|findings?|conclusions?|impressions?|part|interpretation|text)",
    re.IGNORECASE,
)


def what_stands(sentence: str) -> Stands | None:
    """What a sentence of an addendum leaves as it is; None for a sentence that says anything more."""
    said = " ".join(sentence.split()).strip(" -*.")
    if _REST.fullmatch(said):
        return Stands.REST
    return Stands.WHOLE if _WHOLE.fullmatch(said) else None
