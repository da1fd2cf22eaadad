"""Dates in the world's notations: numbers in any order, months in words, weeks, and ages over 89."""

import re
from collections.abc import Iterator

from cardiolens.curation.release.identity_rule import Rule, Words, any_of, rule

_DAY = r"(?<!\d)(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th|er|re|ª|º|\.)?"
_OF = r"(?:(?:of|de|del|di|den|day|d')\s)*"
_YEAR = r"(?:1[2-9]|2[0-6])\d\d(?!\d)"  # of the calendars in use: 1345 in Iran, 2509 in Thailand
_UNIT = r"(?:mm|cm|m|ml|ms|s|g|kg|bpm|t|years?|months?|weeks?|days?|frames?|slices?)(?![^\W\d_])"
_MONTH_WORDS = r"(?P<month>(?:M\d\d|[^\d;:!?%()\[\]]){1,28}?)"  # CLDR names a month without a name M05
_SEPARATED = r"(?<![\d.])(\d{1,4})(\s?[./·年-]\s?|\s)(\d{1,2})(\s?[./·月-]\s?|\s)'?(\d{1,4})(?!\d|[.,]\d)"


def date_rules(words: Words) -> Iterator[Rule]:
    """Yield the rules of dates, and of ages that only few people reach."""
    yield rule("date", _SEPARATED, _is_date)
    month = rf"(?:(?i:{any_of(words['months'])})|{any_of(words['months_as_written'])})(?![^\W\d_])\.?"
    yield rule("date", rf"{_DAY}\s?[./-]?\s?{_OF}{month}(?:\s?[./-]?\s?{_OF}'?\d{{2,4}}(?!\d))?")
    yield rule(
        "date",
        rf"(?<![^\W\d_]){month}\s?[./,-]?\s?(?:{_DAY}(?!\d)(?:,?\s{_YEAR})?|{_OF}(?:{_YEAR}|'\d\d(?!\d)))",
    )
    yield rule("date", rf"{_DAY}(?!\s?{_UNIT}){_MONTH_WORDS}(?<!\d){_YEAR}", _is_month)
    yield rule("date", rf"(?<!\d){_YEAR}{_MONTH_WORDS}{_DAY}(?!\d|\s?{_UNIT}|\s?%)", _is_month)
    yield rule("date", rf"(?<=[^\d\s]\s){_DAY}(?!\d),?\s{_YEAR}")
    yield rule("date", r"\d{1,4}\s?[年년]\s?\d{1,2}\s?[月월]|\d{1,2}\s?[月월]\s?\d{1,2}\s?[日号號일]")
    yield rule("date", rf"{_DAY}\s?[./-]?\s?[IVX]{{1,4}}\s?[./-]?\s?(?:{_YEAR}|\d\d(?!\d))")
    yield rule("date", r"(?<![\d./])(?:0?[1-9]|1[0-2])\s?[./-]\s?(?:19|20)\d\d(?!\d)")
    yield rule("date", r"(?<!\d)(?:19|20)\d\d[./-](?:0[1-9]|1[0-2])(?!\d)")
    yield rule("date", r"(?<![\d.])(?:0?[1-9]|[12]\d|3[01])\.(?:0[1-9]|1[0-2])\.(?!\d)")
    yield rule("date", r"(?<!\d)(?:19|20)\d\d-?(?:W\d\d(?:-?\d)?|\d{3})(?!\d)")  # ISO 8601: week, day of year
    births = rf"(?<!\w)(?i:{any_of(words['births'])})(?!\w)"
    yield rule("date", rf"{births}\W{{0,3}}(?:[^\W\d_]+\W{{1,3}}){{0,2}}\d{{2,4}}")
    yield rule("age", rf"(?<!\d)(?:9\d|1[01]\d)[\s-]?(?i:{any_of(words['years_of_age'])})(?![^\W\d_])")
    yield rule("age", rf"(?<!\w)(?i:{any_of(words['ages'])})\W{{1,3}}(?:9\d|1[01]\d)(?!\d|[.,%])")


def _is_date(match: re.Match[str]) -> bool:
    """Whether three numbers between like separators are day, month and year in some order."""
    first, second, third = match[1], match[3], match[5]
    if match[2].strip() != match[4].strip() and match[2].strip() != "年":
        return False
    if not match[2].strip() and len(first + second + third) < 8:  # blanks alone separate measurements as well
        return False
    if len(third) in (2, 4) and len(first) <= 2:
        return _is_day(first, second) or (len(first) == 2 and _is_day(second, third[-2:]))
    return len(first) in (2, 4) and len(third) <= 2 and _is_day(second, third)


def _is_day(first: str, second: str) -> bool:
    """Whether two numbers are a day and a month."""
    low, high = sorted((int(first), int(second)))
    return 1 <= low <= 12 and high <= 31


def _is_month(match: re.Match[str]) -> bool:
    """Whether a month may stand between a day and a year: letters of at most four words."""
    return any(map(str.isalpha, match["month"])) and len(match["month"].split()) <= 4
