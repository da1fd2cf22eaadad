"""The order of packages: what pyproject.toml allows is what the code does and what docs/design.md draws."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "cardiolens"
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
LAYERS = [re.split(r" *\| *", layer) for layer in CONTRACTS[0]["layers"]]
VERBS = LAYERS[1]
GROUND = {"__init__", "__main__", "digest", "errors", "given", "plain", "suggest", "tables"}


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [Path(sys.executable).with_name("lint-imports"), "--config", folder / "pyproject.toml"]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)


def test_imports_point_one_way():
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("module", "statement"),
    [
        ("plan/keys.py", "from cardiolens.inference.stream import messages"),
        ("results/merging.py", "from cardiolens.inference.plan import missing"),
        ("steps/judge.py", "from cardiolens import judge"),
    ],
)
def test_an_import_that_points_up_or_across_is_found(tmp_path, module, statement):
    for path in PACKAGE.rglob("*.py"):
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(path.read_text())
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    broken = tmp_path / "cardiolens" / module
    broken.write_text(f"{broken.read_text()}\n{statement}\n")
    done = lint(tmp_path)
    assert done.returncode == 1
    assert "BROKEN" in done.stdout


def test_the_root_holds_verbs_and_the_ground_and_nothing_else():
    assert {path.stem for path in PACKAGE.glob("*.py")} == GROUND | set(VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_is_a_door_with_an_exit_code(verb):
    tree = ast.parse((PACKAGE / f"{verb}.py").read_text())
    assert ast.get_docstring(tree).startswith(f"`python -m cardiolens.{verb}")
    (main,) = [node for node in tree.body if getattr(node, "name", "") == "main"]
    assert ast.unparse(main.returns) == "int"


def test_the_picture_in_the_docs_is_the_order_that_is_enforced():
    drawn = (ROOT / "docs" / "design.md").read_text().split("<!-- layers -->")[1]
    rows = [
        re.findall(r"`(\w+)`", line.split("|")[1]) for line in drawn.splitlines() if line.startswith("| `")
    ]
    assert [sorted(row) for row in rows] == [sorted(layer) for layer in LAYERS]
