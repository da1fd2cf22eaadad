"""`python -m cardiolens.store ls|verify|prune|compact store=stores/...`: inspect and maintain a store."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rich.table import Table

from cardiolens.base.console import console, say
from cardiolens.base.errors import InputError, RunError
from cardiolens.commands.command import begin, tell
from cardiolens.storage.permissions import follow
from cardiolens.storage.places import Store
from cardiolens.study.cohort import read_cohort
from cardiolens.workflow.upkeep.compact import compact
from cardiolens.workflow.upkeep.contents import contents
from cardiolens.workflow.upkeep.prune import delete, removable
from cardiolens.workflow.upkeep.store_checks import problems

Words = Mapping[str, str]


def ls(store: Store, words: Words) -> int:
    """Print the tables of a store with their parts, rows, bytes and schema versions."""
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
        say(f"{len(cohort.studies)} studies prepared, {len(cohort.failed)} failed")
    return 0


def verify(store: Store, words: Words) -> int:
    """Read every part and print what is wrong; 1 if anything is, else 0."""
    n_faults = 0
    for problem in problems(store):
        n_faults += 1
        say(problem)
    say(f"{n_faults} problems" if n_faults else "whole: every part was read, every frame digested")
    return 1 if n_faults else 0


def prune(store: Store, words: Words) -> int:
    """Print the files that no command reads any more; with apply=true delete them."""
    files = removable(store, _listed(words.get("models", "[]")))
    for file in files:
        say(f"{file.path}: {file.n_bytes / 1e6:.1f} MB, {file.reason}")
    total = f"{len(files)} files, {sum(file.n_bytes for file in files) / 1e6:.1f} MB"
    if words.get("apply") == "true":
        delete(files)
        say(f"deleted: {total}")
    else:
        say(f"{total}; nothing is deleted yet: add apply=true" if files else "nothing to delete")
    return 0


def compacted(store: Store, words: Words) -> int:
    """Merge small completion parts of every model."""
    for result in compact(store):
        say(
            f"{result.name}: {result.parts_before} parts became {result.parts_after}, {result.rows:,} rows"
            + (f", {result.repeated} repeated rows dropped" if result.repeated else "")
        )
    return 0


VERBS: Mapping[str, tuple[Callable[[Store, Words], int], tuple[str, ...]]] = {
    "ls": (ls, ("store",)),
    "verify": (verify, ("store",)),
    "prune": (prune, ("store", "models", "apply")),
    "compact": (compacted, ("store",)),
}


def main(argv: Sequence[str] | None = None) -> int:
    begin()
    given = list(sys.argv[1:] if argv is None else argv)
    try:
        if not given or given[0] not in VERBS:
            raise InputError(
                f"{given[0] if given else 'no verb'}: give one of {', '.join(VERBS)}, and store=<folder>"
            )
        verb, legal = VERBS[given[0]]
        words = _words(given[1:], legal)
        follow(Path(words["store"]))
        return verb(Store(Path(words["store"])), words)
    except (InputError, RunError) as error:
        return tell(error)


def _words(given: Sequence[str], legal: Sequence[str]) -> dict[str, str]:
    words = {}
    for word in given:
        name, equals, value = word.partition("=")
        if not equals or name not in legal:
            raise InputError(f"{word!r}: give {', '.join(f'{name}=...' for name in legal)}")
        words[name] = value
    if "store" not in words:
        raise InputError("store=... is not given; name the store's folder, e.g. store=stores/phantom_ci")
    if words.get("apply", "true") not in ("true", "false"):
        raise InputError(f"apply={words['apply']}: choose true or false")
    return words


def _listed(value: str) -> list[str]:
    return [name.strip() for name in value.strip("[]").split(",") if name.strip()]


if __name__ == "__main__":
    sys.exit(main())
