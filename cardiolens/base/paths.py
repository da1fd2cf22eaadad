"""Places of the installed package."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]  # the folder `cardiolens`


def shipped(name: str) -> Path:
    """A folder that is shipped with the package: inside an installed one, beside it in a checkout."""
    installed = PACKAGE / name
    return installed if installed.is_dir() else PACKAGE.parent / name


def checkout() -> Path | None:
    """The checkout that the package runs from; None for an installed wheel."""
    return PACKAGE.parent if (PACKAGE.parent / ".git").exists() else None
