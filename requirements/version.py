"""The version of what is built here: the number of the package at its tag, and elsewhere the commit as well.

hatchling reads it (`tool.hatch.version` in pyproject.toml); `python requirements/version.py` prints it. The
number is written once, in `cardiolens/__init__.py`; the tag of a release is `v` and that number.
"""

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GIVEN = "CARDIOLENS_VERSION"  # for builds without .git, such as in a container


def version(root: Path = ROOT) -> str:
    """Return e.g. 0.1.0 at the tag v0.1.0, else 0.1.0.dev27+g1a2b3c4d; `.dirty` where files were changed."""
    number = _number(root)
    if given := os.environ.get(GIVEN):
        return given
    if (root / "PKG-INFO").exists():  # an unpacked source distribution
        (packed,) = re.findall(r"^Version: (\S+)$", (root / "PKG-INFO").read_text(encoding="utf-8"), re.M)
        return packed
    if not (root / ".git").exists() or (commit := _git(root, "rev-parse", "--short=8", "HEAD")) is None:
        return f"{number}.dev0+unknown"
    tags = (_git(root, "tag", "--points-at", "HEAD", "--list", "v[0-9]*") or "").split()
    if wrong := [tag for tag in tags if tag != f"v{number}"]:
        raise SystemExit(
            f"tag {wrong[0]} is on a commit whose cardiolens/__init__.py says {number}; "
            f"tag it v{number}, or correct __version__ first"
        )
    dirty = ".dirty" if _git(root, "status", "--porcelain", "--untracked-files=no") else ""
    if tags and not dirty:
        return number
    return f"{number}.dev{_commits_since_a_release(root)}+g{commit}{dirty}"


def _number(root: Path) -> str:
    text = (root / "cardiolens" / "__init__.py").read_text(encoding="utf-8")
    (number,) = re.findall(r'^__version__ = "(\d+\.\d+\.\d+)"$', text, re.M)
    return number


def _commits_since_a_release(root: Path) -> str:
    last = _git(root, "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", "HEAD")
    return _git(root, "rev-list", "--count", f"{last}..HEAD" if last else "HEAD") or "0"


def _git(root: Path, *words: str) -> str | None:
    """Return what git prints; None where it fails or is not here."""
    try:
        done = subprocess.run(["git", "-C", root, *words], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


if __name__ == "__main__":
    print(version())
