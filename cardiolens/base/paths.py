"""Places of the installed package, and its version."""

from importlib.metadata import version
from pathlib import Path

from cardiolens import __version__

PACKAGE = Path(__file__).resolve().parents[1]  # the folder `cardiolens`


def is_source() -> bool:
    """Return whether the package lies in its source tree, which is known by its pyproject.toml."""
    return (PACKAGE.parent / "pyproject.toml").is_file()


def running_version() -> str:
    """Return e.g. 0.1.0, or 0.1.0.dev27+g1a2b3c4d of a wheel that was built away from a release.

    A wheel names the commit it was built from, unless that is the tag of a release. The commit of a checkout
    may have changed since it was installed; the manifest of a run has it.
    """
    return __version__ if is_source() else version("cardiolens")


def shipped(name: str) -> Path:
    """A folder that is shipped with the package: inside an installed one, beside it in a checkout.

    An older checkout may hold a folder of that name with caches alone.
    """
    return (PACKAGE.parent if is_source() else PACKAGE) / name


def checkout() -> Path | None:
    """The checkout that the package runs from; None for an installed wheel."""
    return PACKAGE.parent if (PACKAGE.parent / ".git").exists() else None
