"""Structure of the code: packages, imports between them, import cycles, and the trip of one question.

`python bench/structure.py [CHECKOUT]` counts in any checkout of this repository: modules at the root of
`cardiolens/`, packages ("rooms"), imports between packages ("arrows"), the longest chain of imports, cycles
("circles"), and lines of docs. With `--trip` one question is planned and judged again there, and the files
that it passes are counted. A function counts only at its first call, so loops and caches do not add to it.
"""

import argparse
import ast
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import groupby
from pathlib import Path

TRIPS = {  # verb and its words; the function from which on files are counted
    "question to request": ("sweep", ["mode=plan"], "plan"),
    "completion to score": ("judge", [], "judge"),
}
SWEEP = [
    "model=[uniform]",
    "selector=[clinical]",
    "budget=[8]",
    "prompt=[standard]",
    "dataset=phantom_ci",
    "control=[none]",
]
SWEEP += ["limit=1", "subtask=[C01]", "store=store", "outputs=outputs", "+experiment=demo"]

TRACE = """
import os, runpy, sys
verb, start, package = sys.argv[1:4]
sys.argv = [verb, *sys.argv[4:]]
seen, order, inside = set(), [], []
def trace(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(package) and code.co_name[0] != "<":
        if code.co_name == start and not inside:
            inside.append(frame)
        if inside and code not in seen:
            seen.add(code)
            order.append(os.path.relpath(code.co_filename, package))
    elif event == "return" and inside and inside[0] is frame:
        inside[0] = None
sys.setprofile(trace)
try:
    runpy.run_module(f"cardiolens.{verb}", run_name="__main__")
except SystemExit:
    pass
sys.setprofile(None)
sys.stderr.write("TRIP " + " ".join(order) + chr(10))
"""


def module_names(root: Path) -> dict[str, Path]:
    """Path of every module of the package, by dotted name."""
    paths = {}
    for path in sorted((root / "cardiolens").rglob("*.py")):
        name = ".".join(path.relative_to(root).with_suffix("").parts)
        paths[name.removesuffix(".__init__")] = path
    return paths


def arrows(root: Path) -> dict[str, set[str]]:
    """Imports between rooms, which are the packages and the modules beside them."""
    modules = module_names(root)
    found: dict[str, set[str]] = defaultdict(set)
    for name, path in modules.items():
        for node in ast.walk(ast.parse(path.read_text())):
            for imported in _imported(node, modules):
                here, there = _room(name), _room(imported)
                if here != there and "cardiolens" not in (here, there):
                    found[here].add(there)
    return found


def _imported(node: ast.AST, modules: dict[str, Path]) -> list[str]:
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cardiolens"):
        full = [f"{node.module}.{alias.name}" for alias in node.names]
        return [name if name in modules else str(node.module) for name in full]
    return (
        [alias.name for alias in node.names if alias.name in modules] if isinstance(node, ast.Import) else []
    )


def _room(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def longest_chain(graph: dict[str, set[str]]) -> list[str]:
    """Longest chain of rooms of which each imports the next; the graph must have no circles."""

    @cache
    def chain(room: str) -> tuple[str, ...]:
        below = [chain(other) for other in sorted(graph.get(room, ()))]
        return (room, *max(below, key=len, default=()))

    return list(max(map(chain, list(graph)), key=len))


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Find one circle of imports; empty where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def show_shape(root: Path) -> None:
    graph, names = arrows(root), module_names(root)
    at_root = [path.stem for path in (root / "cardiolens").glob("*.py") if path.stem != "__init__"]
    entries = [path for path in (root / "cardiolens").iterdir() if path.name != "__pycache__"]
    packages = {_room(name) for name, path in names.items() if path.parent != root / "cardiolens"}
    docs = sum(len(path.read_text().splitlines()) for path in (root / "docs").rglob("*.md"))
    found = circle(graph)
    print(
        f"modules {len(names)}, at the root {len(at_root)}, packages {len(packages)}, entries {len(entries)}"
    )
    print(f"import arrows between rooms {sum(map(len, graph.values()))}")
    print(f"circle: {' > '.join(found)}" if found else "circles 0")
    if not found:
        chain = longest_chain(graph)
        print(f"longest chain {len(chain)}: {' > '.join(chain)}")
    print(f"lines of docs {docs}")


def show_trips(root: Path) -> None:
    """Answer one question of the phantom, then trace its path through the files in another process."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": str(root)}

        def run(*words: str) -> subprocess.CompletedProcess[str]:
            command = [sys.executable, *words]
            return subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, check=False
            )

        done = run("-m", "cardiolens.sweep", *SWEEP)
        (outputs,) = (Path(folder) / "outputs").iterdir()
        assert done.returncode == 0, done.stderr
        for name, (verb, words, start) in TRIPS.items():
            asked = [*SWEEP, *words, "store=other"] if verb == "sweep" else [f"run={outputs}"]
            traced = run("-c", TRACE, verb, start, str(root / "cardiolens"), *asked)
            (line,) = [line for line in traced.stderr.splitlines() if line.startswith("TRIP ")]
            stays = [file for file, _ in groupby(line.split()[1:])]
            back = sum(file in stays[:at] for at, file in enumerate(stays))
            print(f"{name}: {len(set(stays))} files, {len(stays)} stays, {back} of them returns")
            rooms = [room for room, _ in groupby(file.split("/")[0] for file in stays)]
            again = sum(room in rooms[:at] for at, room in enumerate(rooms))
            print(f"  by room: {len(set(rooms))} rooms, {len(rooms)} stays, {again} of them returns")


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    words.add_argument("checkout", nargs="?", type=Path, default=Path(__file__).resolve().parents[1])
    words.add_argument("--trip", action="store_true")
    given = words.parse_args()
    show_shape(given.checkout.resolve())
    if given.trip:
        show_trips(given.checkout.resolve())


if __name__ == "__main__":
    main()
