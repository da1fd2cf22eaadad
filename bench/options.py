"""Options of `conf/` and of the specs: how many there are, and what asks for each.

    python -m bench.options

Counted is each option that a person can set in a sweep, an import or a draft of questions, once. Not counted
are names of entries (they are names of files), what a release's folder says of itself, and the catalogue's
facts about published models (`card`). The guides and files of `conf/` that name an option ask for it.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel

from cardiolens.config.base import kinds_within
from cardiolens.config.cluster import SlurmSpec
from cardiolens.config.curation_specs import IngestSpec, QuestionsSpec
from cardiolens.config.dataset import ReleaseSpec
from cardiolens.config.model import ModelCard
from cardiolens.config.sweep import SweepSpec
from cardiolens.config.sweep_factors import PrimaryQuestionSpec

ROOT = Path(__file__).resolve().parents[1]
DOORS = {"": SweepSpec, "cluster.": SlurmSpec, "primary.": PrimaryQuestionSpec}
OTHERS = {"ingest: ": IngestSpec, "questions: ": QuestionsSpec}
LEFT_OUT = (ReleaseSpec, ModelCard)
ENTRIES = ("model", "selector", "prompt")


def options() -> list[str]:
    """Every option, once, in the order of the specs."""
    found = [path for prefix, kind in {**DOORS, **OTHERS}.items() for path in _leaves(kind, prefix)]
    return list(dict.fromkeys(found))


def _leaves(kind: type[BaseModel], prefix: str) -> Iterator[str]:
    for name, field in kind.model_fields.items():
        specs = (kind for kind in kinds_within(field.annotation) if issubclass(kind, BaseModel))
        inner = next(specs, None)
        if inner in LEFT_OUT or (name == "name" and prefix.rstrip(".") in ENTRIES):
            continue
        if inner is None or name == "budget":  # a number, or tokens:N
            yield f"{prefix}{name}"
        else:
            yield from _leaves(inner, f"{prefix}{name}.")


def asking(option: str, texts: dict[str, str]) -> list[str]:
    """The guides and the files of `conf/` that name an option."""
    name = re.escape(re.split(r"[.: ]", option)[-1])
    pattern = re.compile(rf"(?<![\w-]){name}[`=:]")
    return [place for place, text in texts.items() if pattern.search(text)]


def main() -> int:
    """Print a row for each option, and their number."""
    files = [*sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "conf").rglob("*.yaml"))]
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in files}
    every = options()
    print("| option | asked for by |\n|---|---|")
    for option in every:
        places = asking(option, texts)
        more = f" and {len(places) - 3} more" if len(places) > 3 else ""
        print(f"| `{option}` | {', '.join(places[:3]) or 'nothing'}{more} |")
    print(f"{len(every)} options")
    return 0


if __name__ == "__main__":
    sys.exit(main())
