"""The reference pages: made of the code, without a gap; and the names that pages of a run print."""

import re
from pathlib import Path

import pyarrow as pa
import pytest
from printed_names import printed_names

from cardiolens.base.paths import PACKAGE
from cardiolens.commands.help import VERBS
from cardiolens.score.statistics import statistic
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


PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "page-names.md"
NAMED = set(re.findall(r"`([^`]+)`", PAGE.read_text("utf-8")))


def test_every_name_of_the_page_is_in_the_reference() -> None:
    assert len(printed_names()) > 100
    assert sorted(printed_names() - NAMED) == []


def test_every_name_of_the_reference_is_written_somewhere_in_the_code() -> None:
    code = "".join(
        path.read_text("utf-8")
        for path in sorted(PACKAGE.rglob("*"))
        if path.suffix in (".py", ".yaml", ".html", ".js") and path.stat().st_size < 200_000
    ).lower()
    assert [name for name in sorted(NAMED) if name.lower() not in code and name != "scores.metric"] == []


def test_every_share_and_every_metric_with_a_unit_of_its_own_is_in_the_reference() -> None:
    assert sorted((statistic._SHARES | statistic.OWN_UNIT) - NAMED - {"text_entity_f1"}) == []
