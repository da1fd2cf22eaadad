"""A task folder of lmms-eval: a task for each split, over Parquet beside it."""

from collections.abc import Mapping
from pathlib import Path

import yaml

from cardiolens.base import disk
from cardiolens.curation.release.harness.handing_out import hand_out, task_name

LMMS_EVAL = "lmms_eval"  # the folder
TESTED = "0.7.3"  # the version that the tests run
_FUNCTIONS = {
    "doc_to_visual": "cardiolens_prompts.visuals",
    "doc_to_text": "cardiolens_prompts.text",
    "doc_to_messages": "cardiolens_prompts.messages",
    "doc_to_target": "cardiolens_answers.target",
    "process_results": "cardiolens_answers.process_results",
}


def write_lmms_eval(folder: Path, benchmark: str, tables: Mapping[str, Path], canary: str) -> None:
    """Write the tasks of a benchmark; `tables` are the folders of Parquet by split, within `folder`."""
    names = {split: task_name(benchmark, split) for split in tables}
    for split, name in names.items():
        files = [path.relative_to(folder).as_posix() for path in sorted(tables[split].glob("*.parquet"))]
        disk.write_text(folder / f"{name}.yaml", _task(name, split, files, canary))
    group = {"group": task_name(benchmark, "all"), "task": sorted(names.values())}
    disk.write_text(
        folder / f"{group['group']}.yaml", f"# {canary}\n{yaml.safe_dump(group, sort_keys=False)}"
    )
    hand_out(folder, "cardiolens_answers.py", "cardiolens_prompts.py")
    disk.write_text(folder / "README.md", _readme(benchmark, sorted(names.values()), canary))


def _task(name: str, split: str, files: list[str], canary: str) -> str:
    """Return a task in YAML; paths are relative to its file."""
    head = {
        "task": name,
        "dataset_path": "parquet",
        "dataset_kwargs": {"data_files": {split: files}},
        "test_split": split,
        "output_type": "generate_until",
        "generation_kwargs": {"max_new_tokens": 64, "temperature": 0, "do_sample": False},
        "metric_list": [{"metric": "accuracy", "aggregation": "mean", "higher_is_better": True}],
    }
    functions = "".join(f"{role}: !function {name}\n" for role, name in _FUNCTIONS.items())
    return f"# {canary}\n{yaml.safe_dump(head, sort_keys=False)}{functions}"


def _readme(benchmark: str, names: list[str], canary: str) -> str:
    return f"""# {benchmark} in lmms-eval

```
python -m lmms_eval --include_path /path/to/this/folder --tasks {",".join(names)} --model ...
```

Written for lmms-eval {TESTED}. The folder needs nothing but itself and can be moved. `accuracy` is the share
of questions whose reply names exactly the right options. `cardiolens_answers.py` says which replies it reads:
a model that answers in prose scores lower here than in a sweep of CardioLens. Images have their native size.

{canary}
"""
