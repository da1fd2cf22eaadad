"""The version of the code that runs: of a checkout its number, of an installed wheel what it was built as.

A wheel names the commit it was built from, unless that is the tag of a release (requirements/version.py). The
commit of a checkout may have changed since it was installed; the manifest of a run has it.
"""

from importlib.metadata import version

from cardiolens import __version__
from cardiolens.base.paths import is_source


def running_version() -> str:
    """Return e.g. 0.1.0, or 0.1.0.dev27+g1a2b3c4d of a wheel that was built away from a release."""
    return __version__ if is_source() else version("cardiolens")
