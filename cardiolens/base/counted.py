"""A number of things in words."""


def counted(number: object, noun: str) -> str:
    """The number with its noun, e.g. `1 patient`, `20 patients` and `3 studies`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun[:-1]}ies" if noun.endswith("y") else f"{number} {noun}s"
