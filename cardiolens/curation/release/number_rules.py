"""Numbers of six and more digits, however grouped, codes of letters and digits, and addresses of the net."""

import re
from collections.abc import Iterator

from cardiolens.curation.release.identity_rule import Rule, rule

_MOST_GROUPS = 15  # of digits in one number; more are several
_AMOUNT = r"\d{1,3}(?:[.,]\d{1,5})?"
# What has many digits and is nobody's: a broken number, a range or ratio of two, a range of years.
_NO_IDENTITY = re.compile(rf"{_AMOUNT}(?:\s?[-/:]\s?{_AMOUNT})?|(?:19|20)\d\d\s?[-/]\s?(?:19|20)?\d\d")


def number_rules() -> Iterator[Rule]:
    """Yield the rules of numbers and addresses."""
    yield rule("address", r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
    yield rule("address", r"(?i:https?://|ftp://|www\.)[^\s<>\"]+")
    yield rule("address", r"(?<![\w:])(?:[0-9a-fA-F]{1,4}:{1,2}){3,7}[0-9a-fA-F]{1,4}(?![\w:])")
    yield rule("number", r"\w+", _is_code)
    yield rule("number", rf"(?<![\w.])\+?\(?\d+(?:\)?\s?[ ./:()_-]\s?\(?\d+){{1,{_MOST_GROUPS}}}", _is_long)


def _is_code(match: re.Match[str]) -> bool:
    """Whether a word has six and more digits, or four among letters: a number of somebody, a pseudonym."""
    word = match[0]
    n_digits = sum(map(str.isdigit, word))
    return n_digits >= 6 or (n_digits >= 4 and len(word) >= 8 and len(re.findall(r"\D\d", word)) >= 3)


def _is_long(match: re.Match[str]) -> bool:
    """Whether six and more digits stand together, and are no amount, range, ratio or years."""
    return sum(map(str.isdigit, match[0])) >= 6 and not _NO_IDENTITY.fullmatch(match[0].strip("(+"))
