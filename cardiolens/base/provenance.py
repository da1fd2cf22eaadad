"""Provenance of what a stage wrote: the digest of all code and data that can decide it.

A stage names the module that does it. What that module imports, and so on down, decides the result; a change
anywhere in that closure makes the stage run again, and a change outside it does not.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from cardiolens.base.digest import digest_of, sha256_of
from cardiolens.base.paths import PACKAGE
from cardiolens.base.python_source import parsed


@cache
def code_of(*modules: str, package: Path = PACKAGE) -> str:
    """32 hex digits of the source that decides what these modules of the package do.

    Covers every module that they import, directly or not, inside functions too, and the data files of the
    folders of those modules. Raises ValueError for a module that does not exist.
    """
    files = closure_of(*modules, package=package)
    return digest_of([[path.relative_to(package).as_posix(), sha256_of(path)] for path in files])


def closure_of(*modules: str, package: Path = PACKAGE) -> list[Path]:
    """The files whose content decides what these modules do, sorted."""
    for name in modules:
        if _file_of(name, package) is None:
            raise ValueError(f"{name} is no module of {package.name}")
    pending = [(name, True) for name in modules]
    read: dict[Path, bool] = {}  # of each module, whether the imports inside its functions count
    while pending:
        name, whole = pending.pop()
        path = _file_of(name, package)
        if path is None or read.get(path, False) or (path in read and not whole):
            continue
        read[path] = whole
        for source, attribute in _imports(path.read_bytes(), name, path.stem == "__init__", whole):
            inner = f"{source}.{attribute}"
            pending.append((inner if attribute and _file_of(inner, package) else source, True))
        # Importing a.b.c runs the bodies of a and a.b, and no function of theirs.
        pending += [(parent, False) for parent in _parents(name)]
    folders = {path.parent for path in read} - {package}  # beside that, a wheel holds conf/ and slurm/
    return sorted({*read, *(file for folder in folders for file in _data_of(folder))})


def _file_of(name: str, package: Path) -> Path | None:
    head, *rest = name.split(".")
    if head != package.name:
        return None
    place = package.joinpath(*rest)
    module, initial = place.with_suffix(".py"), place / "__init__.py"
    return module if rest and module.is_file() else initial if initial.is_file() else None


def _parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts))]


@cache
def _imports(source: bytes, name: str, initial: bool, whole: bool) -> tuple[tuple[str, str], ...]:
    """What a module imports: pairs of a module and, of `from module import name`, the name."""
    pairs: list[tuple[str, str]] = []
    folder = name.split(".") if initial else name.split(".")[:-1]
    for node in _statements(parsed(source), whole=whole):
        match node:
            case ast.Import(names=names):
                pairs += [(alias.name, "") for alias in names]
            case ast.ImportFrom(module=module, names=names, level=level):
                above = folder[: len(folder) - level + 1] if level else []
                origin = ".".join([*above, *([module] if module else [])])
                pairs += [(origin, alias.name) for alias in names]
    return tuple(pairs)


def _statements(node: ast.AST, *, whole: bool) -> Iterator[ast.AST]:
    """The nodes that run; what stands under `if TYPE_CHECKING` never does."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            for statement in child.orelse:
                yield statement
                yield from _statements(statement, whole=whole)
            continue
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and not whole:
            continue
        yield child
        yield from _statements(child, whole=whole)


def _data_of(folder: Path) -> Iterator[Path]:
    """Files of a package that are no code, with those of its folders that are no packages themselves."""
    for path in folder.iterdir():
        if path.is_file() or not any(path.rglob("*.py")):
            files = [path] if path.is_file() else path.rglob("*")
            yield from (file for file in files if file.is_file() and file.suffix not in {".py", ".pyc"})
