"""Values of DICOM elements as numbers and text, where the first of several parts of a header holds them."""

import math
from typing import Any

from pydicom.dataset import Dataset

LARGEST_NUMBER = 1e30  # of any number of a header: unset elements of doubles hold values like 1.8e308


def value_of(parts: tuple[Dataset, ...], name: str) -> Any:
    """Return the first value that is not empty; None if no part has one."""
    for part in parts:
        value = part.get(name)
        if value is not None and value != "":
            return value
    return None


def number_of(parts: tuple[Dataset, ...], name: str, default: float | None = None) -> float | None:
    """Return a number; the default if the element is absent, None if its value is not a finite number."""
    value = value_of(parts, name)
    if value is None:
        return default
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) and abs(number) < LARGEST_NUMBER else None


def numbers_of(parts: tuple[Dataset, ...], name: str, count: int) -> list[float] | None:
    """Return at least `count` finite numbers; None if the element holds none, fewer or others."""
    value = value_of(parts, name)
    if value is None:
        return None
    try:
        numbers = [float(entry) for entry in value]
    except (TypeError, ValueError):
        return None
    return numbers if len(numbers) >= count and all(map(math.isfinite, numbers)) else None


def whole_number_of(parts: tuple[Dataset, ...], name: str) -> int | None:
    """Return a number without its fraction; None if it is absent or no number that counts anything."""
    number = number_of(parts, name)
    return None if number is None or abs(number) > 1e9 else int(number)


def integer_of(dataset: Dataset, name: str, default: int) -> int:
    """Return an integer; the default if the element is absent or empty."""
    value = dataset.get(name)
    return default if value is None or value == "" else int(value)


def text_of(dataset: Dataset, name: str) -> str:
    """Return an element as text without blanks around it; empty if it is absent."""
    value = dataset.get(name)
    return "" if value is None else str(value).strip()


def coded_words(parts: tuple[Dataset, ...], name: str) -> tuple[str, ...]:
    """Return the words of a coded element, such as ImageType, in capitals."""
    value = value_of(parts, name)
    if value is None:
        return ()
    entries = [value] if isinstance(value, str) else list(value)
    return tuple(str(entry).strip().upper() for entry in entries)
