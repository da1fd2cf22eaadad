"""Places of the installed package."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]  # the folder `cardiolens`


def is_source() -> bool:
    """Return whether the package lies in its source tree, which is known by its pyproject.toml."""
    return (PACKAGE.parent / "pyproject.toml").is_file()


def shipped(name: str) -> Path:
    """A folder that is shipped with the package: inside an installed one, beside it in a checkout.

    An older checkout may hold a folder of that name with caches alone.
    """
    return (PACKAGE.parent if is_source() else PACKAGE) / name


def checkout() -> Path | None:
    """The checkout that the package runs from; None for an installed wheel."""
    return PACKAGE.parent if (PACKAGE.parent / ".git").exists() else None
