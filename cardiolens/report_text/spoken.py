"""Spoken marks and numbers of a dictation: `no oedema period`, `ejection fraction fifty five percent`."""

import re

_SPOKEN = re.compile(
    r"(?<=[a-z\d]) +(?:(?P<stop>period|full stop|new paragraph|new line)|(?P<comma>comma)|(?P<colon>colon))"
    r"(?=\s|$)"
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_ONES = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_TEENS = (
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
)
_NUMBER = re.compile(  # with its unit, or behind the name of a share; no part of a longer number
    r"(?<!hundred )(?<!thousand )(?<!point )\b"
    rf"(?:(?P<tens>{'|'.join(_TENS)})(?:[ -](?P<ones>{'|'.join(_ONES)}))?"
    rf"|(?P<teen>{'|'.join(_TEENS)}))(?=\s(?:percent|per cent|mm|milli\w+)\b|\s?%)",
    re.IGNORECASE,
)


# Words that a recogniser cut in two.
_CUT = re.compile(
    r"\b(?P<lead>trans|sub|hypo|dys)(?P<gap> )(?P<rest>mural|endo ?cardial|epi ?cardial"
    r"|epic cardial|kines[ie][as]|kinetic)\b",
    re.IGNORECASE,
)
_WHOLE = {"epiccardial": "epicardial"}
# Short forms that were spelled; two letters alone may be words: `a r`.
_SPELLED = re.compile(
    r"(?<![\w.])(?:[lr] v(?: e f)?|(?:(?<=no )|(?<=mild )|(?<=moderate )|(?<=severe )|(?<=trace ))[mta] r"
    r"|e f|l g e|l v o t|l a d|r c a)(?![\w.])(?! [a-z](?!\w))"
)


def of_dictation(text: str) -> str:
    """Replace the spoken marks of a text by written ones; the text keeps its length."""

    def mark(match: re.Match[str]) -> str:
        sign = "." if match["stop"] else "," if match["comma"] else ":"
        return sign + " " * (len(match[0]) - 1)

    return _NUMBER.sub(_figures, _SPOKEN.sub(mark, _CUT.sub(_joined, _SPELLED.sub(_short, text))))


def _short(match: re.Match[str]) -> str:
    """A short form that was spelled: `r v e f` is rvef."""
    return match[0].replace(" ", "").ljust(len(match[0]))


def _joined(match: re.Match[str]) -> str:
    """Both parts as one word, where they make one: `hypo kinesia`, and not `trans kinetic`."""
    rest = match["rest"].replace(" ", "").lower()
    is_motion = match["lead"].lower() in ("hypo", "dys")
    if is_motion != rest.startswith("kine") or (match["lead"].lower() == "trans") != (rest == "mural"):
        return match[0]
    return f"{match['lead']}{_WHOLE.get(rest, rest)}".ljust(len(match[0]))


def _figures(match: re.Match[str]) -> str:
    """A number of two digits, where its words stood."""
    if match["teen"]:
        value = 10 + _TEENS.index(match["teen"].lower())
    else:
        value = 20 + 10 * _TENS.index(match["tens"].lower())
        value += 1 + _ONES.index(match["ones"].lower()) if match["ones"] else 0
    return str(value).ljust(len(match[0]))
