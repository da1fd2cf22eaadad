"""A number of things in words."""


def counted(number: object, noun: str) -> str:
    """The number with its noun, e.g. `1 patient` and `20 patients`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
