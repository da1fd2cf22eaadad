"""Names of the code: how many say what a thing is, and how many only that something happened to it.

`python bench/names.py [CHECKOUT]` counts, in any checkout of this repository, the bindings of `cardiolens/`
(functions, classes, parameters, locals, loop variables) and the share of them on the list `VAGUE`, by
package, and file stems that stand more than once. `tests/unit/test_names.py` lets neither number rise.
"""

import argparse
import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

# Participles and pronouns: a name that is only one of these says nothing of what it holds.
_WORDS = """
about asked begun beside bound cut done drawn ended fallen found given gone heard held it judged kept known
laid left lost made meant named noted one ones other others own placed put said same seen shown some something
stood such taken that them these this those told tried wanted whole written
"""
VAGUE = frozenset(_WORDS.split())


def bindings(tree: ast.AST) -> Iterator[str]:
    """Every name that a module binds, once for each function (or class, or module) that binds it."""
    for scope in ast.walk(tree):
        if isinstance(scope, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield from set(_bound_in(scope))


def _bound_in(scope: ast.AST) -> Iterator[str]:
    if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        arguments = scope.args
        every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        yield from (argument.arg for argument in every)
    pending = list(ast.iter_child_nodes(scope))
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        pending += ast.iter_child_nodes(node)


def is_vague(name: str) -> bool:
    return name.strip("_").lower() in VAGUE


def by_package(root: Path) -> dict[str, tuple[int, int]]:
    """Vague bindings and all bindings of each package at the top of `cardiolens/`."""
    vague, every = Counter[str](), Counter[str]()
    for path in (root / "cardiolens").rglob("*.py"):
        package = path.relative_to(root / "cardiolens").parts[0].removesuffix(".py")
        names = list(bindings(ast.parse(path.read_text())))
        every[package] += len(names)
        vague[package] += sum(map(is_vague, names))
    return {package: (vague[package], every[package]) for package in sorted(every)}


def repeated_stems(root: Path) -> list[str]:
    """Stems of modules that stand more than once; `__init__` is the name of no module."""
    stems = Counter(path.stem for path in (root / "cardiolens").rglob("*.py") if path.stem != "__init__")
    return sorted(stem for stem, times in stems.items() if times > 1)


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    words.add_argument("checkout", nargs="?", type=Path, default=Path(__file__).resolve().parents[1])
    root = words.parse_args().checkout.resolve()
    counts = by_package(root)
    for package, (vague, every) in counts.items():
        print(f"{package:14} {vague:5} of {every:6}  {vague / max(every, 1):5.1%}")
    vague, every = (sum(column) for column in zip(*counts.values(), strict=True))
    print(f"{'all':14} {vague:5} of {every:6}  {vague / every:5.1%}")
    stems = repeated_stems(root)
    print(f"file stems that stand more than once: {len(stems)}: {' '.join(stems)}")


if __name__ == "__main__":
    main()
