"""The names that a command line may use: the files of conf/, shipped and the user's own, by group."""

from collections.abc import Iterator
from pathlib import Path

from cardiolens.base.paths import shipped
from cardiolens.base.untrusted.bounded_files import is_housekeeping
from cardiolens.config.released import is_release

GROUPS = ("model", "selector", "prompt", "control", "dataset", "cluster", "tracker", "experiment")
ONE_OF = ("dataset", "cluster", "tracker")  # groups of which a sweep selects exactly one entry


def packaged_conf() -> Path:
    """Return the shipped `conf/` folder."""
    return shipped("conf")


def conf_folders() -> list[Path]:
    """Return the folders searched for names: `conf/` in the working directory, then the packaged one.

    The `conf/` of a release is not the user's.
    """
    own_conf = Path.cwd() / "conf"
    packaged = packaged_conf()
    if is_release(Path.cwd()):  # its makers are strangers
        return [packaged]
    return [packaged] if not own_conf.is_dir() or own_conf.samefile(packaged) else [own_conf, packaged]


def legal_names(group: str) -> list[str]:
    """Return the sorted names of a configuration group, including the user's own."""
    return sorted({path.stem for folder in conf_folders() for path in conf_files(folder / group)})


def conf_files(folder: Path) -> Iterator[Path]:
    """Yield the configuration files of a folder."""
    return (path for path in folder.glob("*.yaml") if not is_housekeeping(path.name))
