"""Tables on disk: whole or absent, of one schema, read back as written."""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardiolens.base import disk
from cardiolens.storage import schemas, tables

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "request_key": st.text(st.characters(codec="utf-8"), max_size=5),
            "text": st.none() | st.text(st.characters(codec="utf-8"), max_size=20),
            "seconds": st.none() | st.floats(allow_nan=False),
            "attempt": st.integers(0, 2**31 - 1),
        }
    ),
    max_size=5,
)


@given(st.lists(ROWS, max_size=4))
def test_parts_read_back_as_they_were_written(parts: list[list[dict[str, object]]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "completions"
        written = [tables.from_rows(rows, schemas.COMPLETIONS) for rows in parts]
        for table in written:
            tables.write_part(folder, table, schemas.COMPLETIONS)
        assert tables.read(folder, schemas.COMPLETIONS).equals(tables.concat(written, schemas.COMPLETIONS))


def test_every_table_keeps_its_schema_when_all_is_null(tmp_path: Path) -> None:
    some = [schemas.VOLUMES, schemas.FRAMES, schemas.QUESTIONS, schemas.REQUESTS, schemas.COMPLETIONS]
    for schema in [*some, schemas.VERDICTS, schemas.SCORES]:
        path = tables.write_part(tmp_path, tables.from_rows([{}], schema), schema)
        assert pq.read_schema(path).equals(schema)


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    def fail_half_way() -> None:
        with disk.atomic(tmp_path / "a") as beside:
            beside.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_half_way()
    assert list(tmp_path.iterdir()) == []


def test_of_two_that_replace_at_once_one_part_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, both, listed = tables.from_rows([{"metric": "a"}], schemas.SCORES), Barrier(2), tables.parts
    tables.write_part(tmp_path, table, schemas.SCORES)
    monkeypatch.setattr(tables, "parts", lambda folder: (listed(folder), both.wait(30))[0])
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda _: tables.replace(tmp_path, table, schemas.SCORES), range(2)))
    assert len(listed(tmp_path)) == 1


def test_blocks_become_one_part_in_their_order(tmp_path: Path) -> None:
    blocks = [tables.from_rows([{"metric": str(number)}] * 30_000, schemas.SCORES) for number in range(5)]
    for replaced in (blocks[:1], blocks, []):
        tables.replace(tmp_path, iter(replaced), schemas.SCORES)
        (part,) = tables.parts(tmp_path)
        expected = [row for block in replaced for row in block["metric"].to_pylist()]
        assert tables.read(tmp_path, schemas.SCORES)["metric"].to_pylist() == expected
        groups = tables.open_part(part).metadata
        assert groups.num_row_groups == (2 if replaced is blocks else 1)
