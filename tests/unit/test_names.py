"""Names say what a thing is: neither vague names nor stems that stand twice become more (bench/names.py)."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from names import by_package, is_vague, repeated_stems  # noqa: E402

MOST = 0.015  # of all bindings; what is left are words that fit, such as the left of a picture
# Two doors of one subject: the command, and the options of `conf/` that it takes.
TWICE = {"ingest", "questions", "sweep", "write"}


@pytest.mark.full
def test_the_share_of_vague_names_does_not_rise():
    counts = by_package(ROOT)
    vague, every = (sum(column) for column in zip(*counts.values(), strict=True))
    assert vague / every < MOST, {package: count for package, (count, _) in counts.items() if count}


def test_no_further_module_takes_a_name_that_another_has():
    assert set(repeated_stems(ROOT)) <= TWICE


def test_no_module_has_a_vague_name():
    assert [path for path in (ROOT / "cardiolens").rglob("*.py") if is_vague(path.stem)] == []


@pytest.mark.parametrize("package", sorted(path.name for path in (ROOT / "cardiolens").glob("*/")))
def test_no_public_class_or_function_of_a_module_has_a_vague_name(package):
    found = {
        f"{path.stem}.{node.name}"
        for path in (ROOT / "cardiolens" / package).rglob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
        if not node.name.startswith("_") and is_vague(node.name)
    }
    assert found == set()


def test_a_vague_name_is_seen():
    assert is_vague("_told")
    assert is_vague("Found")
    assert not is_vague("findings")
