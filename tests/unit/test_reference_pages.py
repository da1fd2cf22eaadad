"""The reference pages are made of the code, and leave no option and no column without a meaning."""

import re

import pyarrow as pa
import pytest

from cardiolens.storage import schemas
from jobs.make_reference import classes, pages, remarks

TEXTS = {path.stem: (path, text) for path, text in pages().items()}


@pytest.mark.parametrize("page", TEXTS)
def test_the_page_is_in_step_with_the_code(page: str) -> None:
    path, text = TEXTS[page]
    assert path.read_text(encoding="utf-8") == text, f"{path.name}: run python jobs/make_reference.py"


@pytest.mark.parametrize("page", TEXTS)
def test_every_row_has_a_meaning(page: str) -> None:
    rows = re.findall(r"^\| `.*$", TEXTS[page][1], re.M)
    assert rows
    assert [row for row in rows if re.search(r"\|\s+\|$", row)] == []


def test_every_option_has_its_row() -> None:
    said = TEXTS["configuration"][1]
    for spec in classes():
        assert remarks(spec).keys() >= spec.model_fields.keys()
        assert [name for name in spec.model_fields if f"| `{name}` |" not in said] == []


def test_every_column_of_every_table_has_its_row() -> None:
    every = [one for one in vars(schemas).values() if isinstance(one, pa.Schema)]
    assert len(every) == TEXTS["tables"][1].count("\n## ")
    for schema in every:
        name = (schema.metadata or {})[b"table"].decode()
        section = TEXTS["tables"][1].split(f"\n## {name}\n")[1].split("\n## ")[0]
        assert re.findall(r"^\| `(\w+)`", section, re.M) == schema.names
