"""Cells of exported tables: text that a spreadsheet would compute is text, and numbers stay numbers."""

import csv
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_run import write_record
from small_cohort import make_cohort, reader, sweep_spec, swept

from cardiolens.base.errors import RunError
from cardiolens.show.export.table_export import as_text, export
from cardiolens.storage import schemas, tables
from cardiolens.storage.places import Run

FORMULAS = ("=", "+", "-", "@", "\t", "\r")


@given(st.sampled_from(FORMULAS), st.text())
def test_no_cell_begins_as_a_formula_unless_it_is_a_number(first: str, rest: str) -> None:
    cell = as_text(first + rest)
    if cell.startswith(FORMULAS):
        float(cell)
    else:
        assert cell == f"'{first}{rest}"


@given(st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False)))
def test_numbers_stay_numbers(number: float) -> None:
    assert as_text(str(number)) == str(number)


@given(st.text())
def test_other_text_stays_as_it_is(text: str) -> None:
    if not text.startswith((*FORMULAS, "\n", "＝", "＋", "－", "＠")):
        assert as_text(text) == text


@pytest.mark.parametrize("evil", ['=HYPERLINK("http://x","y")', "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1"])
def test_an_exported_item_holds_no_formula(evil: str, tmp_path: Path) -> None:
    planned, judged = swept(sweep_spec(make_cohort(tmp_path, 1), reader("uniform"), subtask=["C01"]))
    write_record(planned, judged)
    verdicts = tables.read(planned.run.verdicts, schemas.VERDICTS)
    at = verdicts.schema.get_field_index("qa_id")
    named = verdicts.set_column(at, verdicts.schema.field(at), pa.array([evil] * verdicts.num_rows))
    tables.replace(planned.run.verdicts, named, schemas.VERDICTS)
    with (export(planned.run, patient_ids=False) / "items.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows
    assert all(row["qa_id"] == f"'{evil}" for row in rows)
    assert not [cell for row in rows for cell in row.values() if cell.startswith(FORMULAS)]


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "export").write_text("")
    with pytest.raises(RunError, match="export"):
        export(Run(tmp_path), patient_ids=False)
