"""A page without images holds the fields of a report and none of its words; one with images holds both."""

import json
from pathlib import Path

from page_run import write_record
from small_cohort import make_cohort, reader, sweep_spec, swept

from cardiolens.show.page.case_viewer.cases import question_cases
from cardiolens.show.page.case_viewer.item_sources import Sources, open_sources
from cardiolens.show.page.case_viewer.study_layout import evidence_index
from cardiolens.show.page.case_viewer.withheld import WITHHELD
from cardiolens.show.page.embed import to_json
from cardiolens.storage import schemas, tables


def read(root: Path, model: str) -> Sources:
    planned, judged = swept(sweep_spec(root, reader(model), name=model, subtask=["R-CINE", "C01"]))
    write_record(planned, judged)
    return open_sources(planned.run, [planned.run])


def words(root: Path) -> list[str]:
    """Findings and impressions of the cohort, as a script writes them."""
    rows = tables.read(root / "store" / "questions", schemas.QUESTIONS).to_pylist()
    reports = [json.loads(row["reference"]) for row in rows if row["subtask"] == "R-CINE"]
    return [to_json(report[name])[1:-1] for report in reports for name in ("findings", "impression")]


def shown(sources: Sources, *, private: bool) -> str:
    asked = [(question, 0) for question in range(sources.questions.num_rows)]
    return to_json(
        [cases for _, cases in question_cases(sources, asked, evidence_index(sources), private=private)]
    )


def test_words_of_reports_stand_only_where_they_were_asked_for(tmp_path: Path) -> None:
    sources = read(make_cohort(tmp_path, 2), "oracle")
    private, said = shown(sources, private=True), words(tmp_path)
    assert len(said) == 4
    assert all(text in private for text in said)
    public = shown(sources, private=False)
    assert not any(text in public for text in said)
    assert public.count(WITHHELD) == 2  # once a study: the oracle repeats its report
    assert "lv_size" in public


def test_replies_that_repeat_no_report_stay(tmp_path: Path) -> None:
    sources = read(make_cohort(tmp_path, 2), "uniform")
    assert WITHHELD not in shown(sources, private=False)
