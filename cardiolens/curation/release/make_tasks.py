"""Make a task folder for lmms-eval of a release that has arrived: a task a split, over Parquet beside it.

The folder needs no CardioLens: one Python file holds the reader of replies and the functions of the tasks.
"""

import ast
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import yaml

from cardiolens.base import disk
from cardiolens.base.console import say
from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_bytes
from cardiolens.config.base import GivenPath, Spec
from cardiolens.config.conf_names import INDEX, read_release, released_options
from cardiolens.curation.release.question_table import read_contents, rows_by_study, split_of, write_rows
from cardiolens.curation.release.verify import differences
from cardiolens.protocol import replies
from cardiolens.protocol.tasks.catalogue import OPEN, load_catalogue

_MODULE = "cardiolens_task"
_MOST_BYTES = 1 << 20  # of a file of the package
_READER = ("reply_words", "marks", "strict_reading")
_TESTED = "0.7.3"  # the version of lmms-eval that the tests run
_CANARY = re.compile(r"cardiolens canary [0-9a-f-]{36}")


class Harness(Spec):
    """The words that make a task folder of a release."""

    harness: GivenPath  # the release
    out: GivenPath  # a new folder


def make_tasks(spec: Harness) -> int:
    """Write the task folder and return 0; InputError for what is no release, or has nothing to ask."""
    if spec.out.exists() and (not spec.out.is_dir() or any(spec.out.iterdir())):
        raise InputError(f"out={spec.out}: is not an empty folder; give a new one")
    if spec.out.resolve().is_relative_to(spec.harness.resolve()):
        raise InputError(f"out={spec.out}: is inside the release; name a place elsewhere")
    options = released_options(spec.harness)
    for difference in differences(spec.harness):
        raise InputError(f"harness={spec.harness}: {difference}; ask for the release anew")
    catalogue, canary = load_catalogue(options["protocol"]), _canary(spec.harness)
    contents = read_contents(spec.harness, catalogue)
    with disk.draft_folder(spec.out) as draft:
        splits = []
        for name, questions in contents.cohorts.items():
            scored = [one for one in questions if one.answer_type not in OPEN]
            with_answers = replace(contents, cohorts={name: scored})
            groups = rows_by_study(name, with_answers, catalogue, canary=canary, frames=True)
            visible = ([row for row in rows if row["frames"]] for rows in groups)
            n_asked = write_rows(draft / "data" / split_of(name), filter(None, visible), frames=True)
            say(f"{name}: {n_asked} of {len(questions)} questions: choices with a known answer and frames")
            splits += [split_of(name)] if n_asked else []
        if not splits:
            raise InputError(f"harness={spec.harness}: has no choice question with a known answer and frames")
        _write_tasks(draft, options["name"], splits, canary)
    say(f"tasks: {spec.out}; its README says how they are used")
    return 0


def _write_tasks(folder: Path, benchmark: str, splits: Sequence[str], canary: str) -> None:
    names = {split: f"{benchmark}_{split}".replace("-", "_") for split in splits}
    group = {"group": f"{benchmark}_all".replace("-", "_"), "task": sorted(names.values())}
    files = {
        **{f"{name}.yaml": f"# {canary}\n{_task(folder, name, split)}" for split, name in names.items()},
        f"{group['group']}.yaml": f"# {canary}\n{yaml.safe_dump(group, sort_keys=False)}",
        f"{_MODULE}.py": task_module(),
        "README.md": _text("readme").format(
            benchmark=benchmark,
            names=",".join(sorted(names.values())),
            tested=_TESTED,
            module=_MODULE,
            canary=canary,
        ),
    }
    for name, text in files.items():
        disk.write_text(folder / name, text)


def _task(folder: Path, name: str, split: str) -> str:
    """Return a task in YAML; paths are relative to its file."""
    tables = sorted((folder / "data" / split).glob("*.parquet"))
    head: dict[str, object] = {
        "task": name,
        "dataset_path": "parquet",
        "dataset_kwargs": {"data_files": {split: [path.relative_to(folder).as_posix() for path in tables]}},
        "test_split": split,
    }
    return yaml.safe_dump(head, sort_keys=False) + _text("task").format(module=_MODULE)


def task_module() -> str:
    """Return the file of a task folder: the modules of the reader, and the functions that import from it."""
    folder = Path(next(iter(replies.__path__)))
    paths = [*(folder / f"{name}.py" for name in _READER), Path(__file__).with_name("lmms_task.py")]
    bodies = [_body(read_bytes(path, _MOST_BYTES).decode()) for path in paths]
    return _text("module").format(about=(replies.__doc__ or "").strip()) + "\n".join(bodies)


def _text(name: str) -> str:
    """Return a text of lmms_task.yaml."""
    texts: dict[str, str] = yaml.safe_load(
        Path(__file__).with_name("lmms_task.yaml").read_text(encoding="utf-8")
    )
    return texts[name]


def _body(source: str) -> str:
    """A module without its docstring and without what it imports of this package."""
    lines = source.splitlines(keepends=True)
    for node in reversed(ast.parse(source).body):
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        is_own = isinstance(node, ast.ImportFrom) and str(node.module).startswith("cardiolens.")
        if is_docstring or is_own:
            del lines[node.lineno - 1 : node.end_lineno]
    return "".join(lines)


def _canary(release: Path) -> str:
    """Return the canary of a release; it goes into YAML, so that nothing but its own form is taken."""
    canary = str(read_release(release)[1].get("canary"))
    if not _CANARY.fullmatch(canary):
        raise InputError(f"harness={release}: the canary in its {INDEX} is none of cardiolens; do not use it")
    return canary
