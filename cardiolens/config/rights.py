"""Rights in a configuration: options that let code in or data out, and who may give them.

They count if they stand on the command line, in a packaged file, or in the user's own `conf/`. The `conf/` of
the working directory is the user's own unless somebody else made it: it lies in a release, one of
its files leads there or belongs to another account, or files from elsewhere (`--config-dir`,
`hydra.searchpath`) took part. Then every right must stand on the command line, those of packaged files too,
because a file of the same folder could lead a trusted model elsewhere.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from cardiolens.base.entry_points import is_word
from cardiolens.base.errors import InputError
from cardiolens.config.cluster import SlurmSpec
from cardiolens.config.conf_names import INDEX, is_release
from cardiolens.config.engine_options import LETS_NOTHING_OUT
from cardiolens.config.sweep import SweepSpec

_CONTROL = "control."  # before the word of another package's control, which no word of a command line names


def rights(spec: SweepSpec) -> Iterator[tuple[str, object]]:
    """Yield each right that a sweep uses, as the option's name on the command line and its value."""
    for model in spec.model:
        name = f"model.{model.name}"
        if model.trust_remote_code:
            yield f"{name}.trust_remote_code", True
        if model.http is not None and model.http.allow_external:
            yield f"{name}.http.allow_external", True
        for option in sorted(model.engine_options.keys() - LETS_NOTHING_OUT):
            yield f"{name}.engine_options.{option}", model.engine_options[option]
    yield from _plugins(spec)
    if spec.tracker.kind != "none" and spec.tracker.mode == "online":
        yield "tracker.mode", "online"
    if spec.cluster.address is not None:
        yield "cluster.address", spec.cluster.address
    if isinstance(spec.cluster, SlurmSpec):
        for option in ("python", "setup", "sbatch"):
            if value := getattr(spec.cluster, option):
                yield f"cluster.{option}", list(value) if isinstance(value, tuple) else value


def _plugins(spec: SweepSpec) -> Iterator[tuple[str, object]]:
    """Yield the options that name parts of other packages, whose code then runs."""
    yield from ((f"model.{model.name}.engine", model.engine) for model in spec.model if model.plugged)
    yield from ((f"selector.{each.name}.kind", each.kind) for each in spec.selector if each.plugged)
    yield from ((f"{_CONTROL}{control}", None) for control in spec.control if is_word(control))
    if any(map(is_word, spec.statistics.report_metrics)):
        yield "statistics.report_metrics", spec.statistics.report_metrics


def check_rights(spec: SweepSpec, named: Iterable[str], foreign: str | None) -> None:
    """Raise InputError for a right that `foreign` files alone give; `named`: options of the words."""
    if foreign is None:
        return
    given = set(named)
    for option, _ in rights(spec):
        above = {option.rsplit(".", cut)[0] for cut in range(1, option.count("."))}  # below a group's entry
        if option not in given and not above & given:
            by_word = "" if option.startswith(_CONTROL) else f"give {option}=... on the command line, or "
            raise InputError(
                f"{option}: lets code in or data out, and {foreign}; if you trust it, {by_word}copy what you "
                "have read into a conf/ of your own"
            )


def made_by_others(conf: Path | None, sources: Sequence[Path] = ()) -> str | None:
    """Return why the configuration is not the user's own, and None if it is.

    `sources` are the folders that took part beside `conf` and the packaged one.
    """
    if sources:
        return f"files of {sources[0]} took part in the configuration"
    if conf is None:
        return None
    files = sorted(path for path in conf.rglob("*") if path.suffix == ".yaml")
    for path in (conf, *files):
        real = path.resolve()
        for folder in real.parents:
            if is_release(folder):
                return f"{path} lies in {folder}, which {INDEX} says is a release"
        if _owner(real) not in (os.getuid(), 0, None):
            return f"{path} belongs to another account"
    return None


def _owner(path: Path) -> int | None:
    try:
        return path.stat().st_uid
    except OSError:
        return None
