"""Places of the installed package."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]  # the folder `cardiolens`


def shipped(name: str) -> Path:
    """A folder that is shipped with the package: inside an installed one, beside it in a checkout.

    A checkout is known by its pyproject.toml: an older one may hold a folder of that name with caches alone.
    """
    is_source = (PACKAGE.parent / "pyproject.toml").is_file()
    return (PACKAGE.parent if is_source else PACKAGE) / name


def checkout() -> Path | None:
    """The checkout that the package runs from; None for an installed wheel."""
    return PACKAGE.parent if (PACKAGE.parent / ".git").exists() else None
