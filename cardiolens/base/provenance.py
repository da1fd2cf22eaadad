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
    pending = [(name, True) for name in modules]
    for name in modules:
        if _file_of(name, package) is None:
            raise ValueError(f"{name} is no module of {package.name}")
    complete: dict[Path, bool] = {}  # of each module, whether the imports inside its functions count
    while pending:
        name, whole = pending.pop()
        path = _file_of(name, package)
        if path is None or complete.get(path, False) or (path in complete and not whole):
            continue
        complete[path] = whole
        pending += [(imported, True) for imported in _imports(path, name, whole=whole)]
        # Importing a.b.c runs the bodies of a and a.b, and no function of theirs.
        pending += [(parent, False) for parent in _parents(name)]
    folders = {path.parent for path in complete}
    return sorted({*complete, *(file for folder in folders for file in _data_of(folder))})


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


def _imports(path: Path, name: str, *, whole: bool) -> Iterator[str]:
    """What a module imports, as dotted names; some name an attribute of a module and lead to no file."""
    base = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in _statements(ast.parse(path.read_bytes()), whole=whole):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                above = base.split(".")[: len(base.split(".")) - level + 1] if level else []
                source = ".".join([*above, *([module] if module else [])])
                yield source
                yield from (f"{source}.{alias.name}" for alias in names)


def _statements(node: ast.AST, *, whole: bool) -> Iterator[ast.AST]:
    """The nodes that run; what stands under `if TYPE_CHECKING` never does."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            for other in child.orelse:
                yield other
                yield from _statements(other, whole=whole)
            continue
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and not whole:
            continue
        yield child
        yield from _statements(child, whole=whole)


def _data_of(folder: Path) -> Iterator[Path]:
    """Files of a package that are no code, with those of its folders that are no packages themselves."""
    for path in folder.iterdir():
        if path.is_dir() and path.name != "__pycache__" and not any(path.rglob("*.py")):
            yield from (file for file in path.rglob("*") if file.is_file())
        elif path.is_file() and path.suffix not in {".py", ".pyc"}:
            yield path
