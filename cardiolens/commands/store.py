"""`python -m cardiolens.store ls|verify|prune|compact store=stores/...`: inspect and maintain a store."""

from typing import Annotated

from rich.table import Table

from cardiolens.base import disk
from cardiolens.base.console import console, say
from cardiolens.base.phrasing import counted
from cardiolens.commands.command import Action, verb
from cardiolens.config.base import GivenPath, Spec
from cardiolens.config.command_words import Listed
from cardiolens.storage.places import Store
from cardiolens.study.cohort import read_cohort
from cardiolens.workflow.upkeep import compact, contents, problems, removable


class Words(Spec):
    """Words of an action."""

    store: GivenPath  # the folder of the store


class PruneWords(Words):
    """Words of `prune`."""

    models: Annotated[tuple[str, ...], Listed] = ()  # models whose completions are removed, too
    apply: bool = False  # whether the files are deleted


def ls(words: Words) -> int:
    """Print the tables of a store with their parts, rows, megabytes and schema versions."""
    table = Table(title=f"store {words.store}", title_justify="left")
    for name in ("table", "parts", "rows", "MB", "schema", "broken parts"):
        table.add_column(name, justify="left" if name == "table" else "right")
    for content in contents(Store(words.store)):
        sizes = f"{content.parts:,}", f"{content.rows:,}", f"{content.n_bytes / 1e6:,.1f}"
        table.add_row(content.name, *sizes, ", ".join(content.versions) or "-", str(content.broken or "-"))
    console.print(table)
    cohort = read_cohort(words.store)
    if cohort is not None:
        say(f"{counted(len(cohort.studies), 'study')} prepared, {len(cohort.failed)} failed")
    return 0


def verify(words: Words) -> int:
    """Read every part and print its problems; return 1 if there are any, else 0."""
    n_faults = 0
    for problem in problems(Store(words.store)):
        n_faults += 1
        say(problem)
    say(f"{n_faults} problems" if n_faults else "whole: every part was read, every frame digested")
    return 1 if n_faults else 0


def prune(words: PruneWords) -> int:
    """Print the files that no command reads any more; delete them if apply=true."""
    files = removable(Store(words.store), words.models)
    sizes = {path: path.stat().st_size / 1e6 for path in files}
    for path, reason in files.items():
        say(f"{path}: {sizes[path]:.1f} MB, {reason}")
    total = f"{len(files)} files, {sum(sizes.values()):.1f} MB"
    if words.apply:
        for path in files:
            disk.remove(path)
        say(f"deleted: {total}")
    else:
        say(f"{total}; nothing is deleted yet: add apply=true" if files else "nothing to delete")
    return 0


def compacted(words: Words) -> int:
    """Merge the small completion parts of every model."""
    for result in compact(Store(words.store)):
        say(str(result))
    return 0


main = verb(
    __name__,
    __doc__,
    Action(Words, ls, "ls"),
    Action(Words, verify, "verify"),
    Action(PruneWords, prune, "prune"),
    Action(Words, compacted, "compact"),
)
