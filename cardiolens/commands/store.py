"""`python -m cardiolens.store ls|verify|prune|compact store=stores/...`: inspect and maintain a store."""

import sys
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from rich.table import Table

from cardiolens.base import disk
from cardiolens.base.console import console, say
from cardiolens.base.errors import InputError
from cardiolens.base.phrasing import counted
from cardiolens.commands.command import door
from cardiolens.config.base import GivenPath, Spec
from cardiolens.config.command_words import Listed, read_words
from cardiolens.storage.places import Store
from cardiolens.study.cohort import read_cohort
from cardiolens.workflow.upkeep.compact import compact
from cardiolens.workflow.upkeep.contents import contents, problems, removable


class Words(Spec):
    """Words of an action."""

    store: GivenPath  # the folder of the store


class PruneWords(Words):
    """Words of `prune`."""

    models: Annotated[tuple[str, ...], Listed] = ()  # models whose completions are removed, too
    apply: bool = False  # whether the files are deleted


def ls(store: Store, words: Words) -> int:
    """Print the tables of a store with their parts, rows, megabytes and schema versions."""
    table = Table(title=f"store {store.root}", title_justify="left")
    for name in ("table", "parts", "rows", "MB", "schema", "broken parts"):
        table.add_column(name, justify="left" if name == "table" else "right")
    for content in contents(store):
        sizes = f"{content.parts:,}", f"{content.rows:,}", f"{content.n_bytes / 1e6:,.1f}"
        broken = str(len(content.broken)) if content.broken else "-"
        table.add_row(content.name, *sizes, ", ".join(content.versions) or "-", broken)
    console.print(table)
    cohort = read_cohort(store.root)
    if cohort is not None:
        say(f"{counted(len(cohort.studies), 'study')} prepared, {len(cohort.failed)} failed")
    return 0


def verify(store: Store, words: Words) -> int:
    """Read every part and print its problems; return 1 if there are any, else 0."""
    n_faults = 0
    for problem in problems(store):
        n_faults += 1
        say(problem)
    say(f"{n_faults} problems" if n_faults else "whole: every part was read, every frame digested")
    return 1 if n_faults else 0


def prune(store: Store, words: PruneWords) -> int:
    """Print the files that no command reads any more; delete them if apply=true."""
    files = removable(store, words.models)
    for file in files:
        say(f"{file.path}: {file.n_bytes / 1e6:.1f} MB, {file.reason}")
    total = f"{len(files)} files, {sum(file.n_bytes for file in files) / 1e6:.1f} MB"
    if words.apply:
        for file in files:
            disk.remove(file.path)
        say(f"deleted: {total}")
    else:
        say(f"{total}; nothing is deleted yet: add apply=true" if files else "nothing to delete")
    return 0


def compacted(store: Store, words: Words) -> int:
    """Merge the small completion parts of every model."""
    for result in compact(store):
        say(
            f"{result.name}: {result.parts_before} parts became {result.parts_after}, {result.rows:,} rows"
            + (f", {result.repeated} repeated rows dropped" if result.repeated else "")
        )
    return 0


ACTIONS: Mapping[str, tuple[Callable[[Store, Any], int], type[Words]]] = {
    "ls": (ls, Words),
    "verify": (verify, Words),
    "prune": (prune, PruneWords),
    "compact": (compacted, Words),
}


def _act(given: list[str]) -> int:
    name, *rest = given or [""]
    if name not in ACTIONS:
        raise InputError(f"{name or 'no action'}: give one of {', '.join(ACTIONS)}, and store=<folder>")
    action, kind = ACTIONS[name]
    words = read_words(kind, rest)
    return action(Store(words.store), words)


def main() -> int:
    """Do the action that the first word names."""
    return door(__doc__, {name: kind for name, (_, kind) in ACTIONS.items()}, _act)


if __name__ == "__main__":
    sys.exit(main())
