"""The order of packages: what pyproject.toml allows is what the code does and what the design page draws."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "cardiolens"
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
LAYERS = [re.split(r" *\| *", layer) for layer in CONTRACTS[0]["layers"]]
COMMANDS = PACKAGE / "commands"
VERBS = sorted({path.stem for path in COMMANDS.glob("*.py")} - {"__init__", "command", "help"})
MOST_AT_THE_ROOT = 19  # entries that a newcomer reads before the first door


DESIGN = (ROOT / "docs" / "explanation" / "design.md").read_text()


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [Path(sys.executable).with_name("lint-imports"), "--config", folder / "pyproject.toml"]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)


def no_code(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if not name.endswith(".py") and not Path(folder, name).is_dir()]


def test_imports_point_one_way():
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("module", "statement"),
    [
        ("inference/plan/request.py", "from cardiolens.inference.stream import loader"),
        ("score/run_results/merging.py", "from cardiolens.inference.plan import missing"),
        ("workflow/steps/judge_run.py", "from cardiolens.commands import judge"),
        ("study/volume.py", "from cardiolens.protocol import tasks"),
    ],
)
def test_an_import_that_points_up_or_across_is_found(tmp_path, module, statement):
    shutil.copytree(PACKAGE, tmp_path / "cardiolens", ignore=no_code)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    broken = tmp_path / "cardiolens" / module
    broken.write_text(f"{broken.read_text()}\n{statement}\n")
    done = lint(tmp_path)
    assert done.returncode == 1
    assert "BROKEN" in done.stdout


def test_the_root_holds_packages_and_two_modules():
    assert {path.name for path in PACKAGE.glob("*.py")} == {"__init__.py", "__main__.py"}
    # Folders of an earlier version may be left with their caches.
    sources = [path for path in PACKAGE.iterdir() if path.is_file() or any(path.rglob("*.py"))]
    assert len(sources) <= MOST_AT_THE_ROOT


@pytest.mark.parametrize("folder", ["cardiolens", "jobs", "bench", "tests"])
def test_a_command_has_one_import_name(folder):
    """`python -m cardiolens.sweep` finds it by `__path__`; imported so, it would load twice."""
    twice = re.compile(rf"^\s*(?:from|import) cardiolens\.({'|'.join(VERBS)})\b", re.MULTILINE)
    short = re.compile(rf"^\s*from cardiolens import .*\b({'|'.join(VERBS)})\b", re.MULTILINE)
    for path in (ROOT / folder).rglob("*.py"):
        text = path.read_text()
        assert not twice.search(text), path
        assert not short.search(text), path


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_is_made_of_its_actions_in_its_last_line(verb):
    tree = ast.parse((COMMANDS / f"{verb}.py").read_text())
    assert ast.get_docstring(tree).startswith(f"`python -m cardiolens.{verb}")
    assert ast.unparse(tree.body[-1]).startswith("main = verb(__name__, __doc__, Action(")


def test_the_picture_in_the_docs_is_the_order_that_is_enforced():
    lines = DESIGN.split("<!-- layers -->")[1].splitlines()
    rows = [re.findall(r"`(\w+)`", line.split("|")[1]) for line in lines if line.startswith("| `")]
    assert [sorted(row) for row in rows] == [sorted(layer) for layer in LAYERS]


def test_the_tree_in_the_docs_is_the_tree():
    tree = DESIGN.split("## The tree")[1].split("```")[1]
    drawn = dict(re.findall(r"^  (\w+)/ +(.*)$", tree, re.MULTILINE))
    assert set(drawn) == {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    for package, line in drawn.items():
        inner = {path.name for path in (PACKAGE / package).iterdir() if (path / "__init__.py").is_file()}
        if "/" in line:
            assert set(re.findall(r"(\w+)/", line)) == inner, package


def test_the_flow_in_the_docs_names_places_that_exist():
    flow = DESIGN.split("## The life of a question")[1].split("## The tree")[0]
    named = re.findall(r"`(?!tests/)([\w/]+/|[\w/]+/\w+\.py)`", flow)
    assert len(named) >= 8
    assert [name for name in named if not (PACKAGE / name).exists()] == []


# Calls by which code could change the disk, or read what strangers made, past what guards them.
WRITES = {
    "os": {
        *("replace", "rename", "renames", "link", "unlink", "remove", "fsync", "ftruncate", "write", "pwrite")
    },
    "shutil": {"rmtree", "copyfile", "copytree", "copy", "copy2", "move"},
    "fcntl": {"flock", "lockf"},
}
WRITING_METHODS = {
    *("write_text", "write_bytes", "unlink", "touch", "rmdir", "rename", "symlink_to", "hardlink_to")
}
READS = {
    "gzip": {"open", "decompress"},
    "zlib": {"decompress", "decompressobj"},
    "zipfile": {"ZipFile", "is_zipfile"},
    "tarfile": {"open"},
    "nib": {"load"},
    "Image": {"open"},
    "csv": {"reader", "DictReader"},
    "np": {"load", "fromfile", "memmap"},
    "pickle": {"load", "loads"},
    "json": {"load"},
}
# The unlinked file of a process has no name that an event could tell.
MAY_WRITE = {"base/disk.py", "storage/spool.py"}
DOOR = "base/untrusted/"
# What they read is this package's, an installed library's, or their own process's.
READ_OUR_OWN = {
    "inference/engine/startup.py",
    "storage/spool.py",
    "show/page/page_rendering.py",
}


def calls(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str, str]]:
    """Line, object and name of each call of a module: `os.replace(...)` is ("os", "replace")."""
    for node in nodes:
        if isinstance(node, ast.Call):
            function = node.func
            if isinstance(function, ast.Attribute):
                owner = function.value.id if isinstance(function.value, ast.Name) else ""
                yield node.lineno, owner, function.attr
            elif isinstance(function, ast.Name):
                yield node.lineno, "", function.id


def opens_for_writing(node: ast.Call) -> bool:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    modes = [
        word.value
        for word in (*node.args, *(keyword.value for keyword in node.keywords))
        if isinstance(word, ast.Constant) and isinstance(word.value, str)
    ]
    return name == "open" and any(set(mode) & set("wax+") and set(mode) <= set("rwaxbt+") for mode in modes)


def modules(*free: str) -> Iterator[tuple[str, str, list[ast.AST]]]:
    """Name, text and nodes of each module of the package, but those whose names begin so."""
    for path in PACKAGE.rglob("*.py"):
        name = str(path.relative_to(PACKAGE))
        if not name.startswith(free):
            yield name, path.read_text(), list(ast.walk(ast.parse(path.read_text())))


def test_the_disk_is_changed_through_one_module():
    found = []
    for name, text, nodes in modules(*MAY_WRITE):
        found += [
            f"{name}:{line}: {owner}.{call}"
            for line, owner, call in calls(nodes)
            if call in WRITES.get(owner, ()) or (call in WRITING_METHODS and owner != "disk")
        ]
        found += [f"{name}: O_CREAT"] * ("O_CREAT" in text)
        found += [
            f"{name}:{node.lineno}: open for writing"
            for node in nodes
            if isinstance(node, ast.Call) and opens_for_writing(node)
        ]
    assert found == []


def test_what_strangers_made_is_read_through_one_package():
    found = []
    for name, _, nodes in modules(DOOR, *READ_OUR_OWN):
        found += [
            f"{name}:{line}: {owner}.{call}"
            for line, owner, call in calls(nodes)
            if call in READS.get(owner, ()) or call in {"dcmread", "Unpickler"}
        ]
        found += [
            f"{name}:{node.lineno}: .pixel_array"
            for node in nodes
            if isinstance(node, ast.Attribute) and node.attr == "pixel_array"
        ]
        found += [f"{name}:{line}: reads a file of no bounded size" for line in unbounded_reads(nodes)]
    assert found == []


def unbounded_reads(nodes: Sequence[ast.AST]) -> Iterator[int]:
    """Lines that read a whole file by pathlib, unless it lies in the package itself."""
    for node in nodes:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr in {"read_text", "read_bytes"} and ast.unparse(node.func.value) != "files":
            source = ast.unparse(node.func.value)
            if not re.search(r"files\(|__file__|__package__|packaged|_DATA|DATA|/proc/", source):
                yield node.lineno
