"""Lists of numbers behind a list of their names: of `EDV/ESV/EF 150/60/60` the ejection fraction is read."""

import re

_NAME = r"(?:EDVi?|ESVi?|SVi?|EF)"
_LIST = re.compile(
    rf"\b(?P<names>{_NAME}(?:/{_NAME})+)(?P<gap>\s?:?\s?)(?P<values>\d{{1,3}}(?:/\d{{1,3}})+)(?=\s?(?:[.,;)]|$))",
    re.IGNORECASE | re.MULTILINE,
)
_MOST_APART = 3  # points between the share that is written and that of the volumes


def of_number_lists(text: str) -> str:
    """Leave the share of such a list with its name; every letter that is left keeps its place."""
    return _LIST.sub(_share, text)


def _share(match: re.Match[str]) -> str:
    names, values = match["names"].upper().split("/"), match["values"].split("/")
    numbers = dict(zip(names, map(int, values), strict=False))
    if len(names) != len(values) or len(numbers) != len(names) or "EF" not in numbers or not _agree(numbers):
        return match[0]
    at = names.index("EF")
    name_place = sum(len(name) + 1 for name in names[:at])
    place = len(match["names"] + match["gap"]) + sum(len(value) + 1 for value in values[:at])
    lead = f"{' ' * name_place}EF".ljust(place)
    return f"{lead}{values[at]}".ljust(len(match[0]))


def _agree(numbers: dict[str, int]) -> bool:
    """Return whether the share is that of the volumes, so that the order of the list is as its names are."""
    full = numbers.get("EDV", numbers.get("EDVI", 0))
    rest = numbers.get("ESV", numbers.get("ESVI", 0))
    return full > 0 and rest > 0 and abs(100 * (full - rest) / full - numbers["EF"]) <= _MOST_APART
