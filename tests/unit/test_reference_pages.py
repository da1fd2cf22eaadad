"""The reference pages are made of the code, and leave no option, column or command without a meaning."""

import re

import pyarrow as pa
import pytest

from cardiolens.commands.help import VERBS
from cardiolens.storage import schemas
from jobs.make_reference import classes, pages, remarks

TEXTS = {path.rpartition("/")[2].removesuffix(".md"): text for path, text in pages().items()}
TABLES = sorted(TEXTS.keys() - {"verbs"})


@pytest.mark.parametrize("page", TABLES)
def test_every_row_has_a_meaning(page: str) -> None:
    rows = re.findall(r"^\| `.*$", TEXTS[page], re.M)
    assert rows
    assert [row for row in rows if re.search(r"\|\s+\|$", row)] == []


def test_every_option_has_its_row() -> None:
    said = TEXTS["configuration"]
    for spec in classes():
        assert remarks(spec).keys() >= spec.model_fields.keys()
        assert [name for name in spec.model_fields if f"| `{name}` |" not in said] == []


def test_every_column_of_every_table_has_its_row() -> None:
    every = [one for one in vars(schemas).values() if isinstance(one, pa.Schema)]
    assert len(every) == TEXTS["tables"].count("\n## ")
    for schema in every:
        name = (schema.metadata or {})[b"table"].decode()
        section = TEXTS["tables"].split(f"\n## {name}\n")[1].split("\n## ")[0]
        assert re.findall(r"^\| `(\w+)`", section, re.M) == schema.names


def test_every_command_has_its_help() -> None:
    blocks = dict(re.findall(r"^### (\w+)\n\n```text\n(.*?)\n```$", TEXTS["verbs"], re.M | re.S))
    assert list(blocks) == [verb for group in VERBS.values() for verb in group]
    for verb, text in blocks.items():
        assert text.startswith(f"python -m cardiolens.{verb}")
    assert "Options" in blocks["sweep"]
