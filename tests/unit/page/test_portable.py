"""A page without images holds the fields of a report and none of its words; one with images holds both."""

import json
from pathlib import Path

from page_run import write_record
from small_cohort import make_cohort, reader, sweep_spec, swept

from cardiolens import tables
from cardiolens.page.case_viewer.cases import Sources, read_sources, study_cases
from cardiolens.page.case_viewer.withheld import WITHHELD, without_reports
from cardiolens.page.embed import to_json
from cardiolens.page.facts import read_facts


def read(root: Path, model: str) -> Sources:
    planned, judged = swept(sweep_spec(root, reader(model), name=model, subtask=["R-CINE", "C01"]))
    write_record(planned, judged)
    return read_sources(planned.run, [planned.run], read_facts(planned.run, [planned.run]))


def words(root: Path) -> list[str]:
    """Findings and impressions of the cohort, as a script writes them."""
    rows = tables.read(root / "store" / "questions", tables.QUESTIONS).to_pylist()
    reports = [json.loads(row["reference"]) for row in rows if row["subtask"] == "R-CINE"]
    return [to_json(report[name])[1:-1] for report in reports for name in ("findings", "impression")]


def shown(sources: Sources) -> str:
    return to_json([cases for _, cases in study_cases(sources)])


def test_words_of_reports_stand_only_where_they_were_asked_for(tmp_path: Path) -> None:
    sources = read(make_cohort(tmp_path, 2), "oracle")
    private, said = shown(sources), words(tmp_path)
    assert len(said) == 4
    assert all(text in private for text in said)
    public = shown(without_reports(sources))
    assert not any(text in public for text in said)
    assert public.count(WITHHELD) == 2  # once a study: the oracle repeats its report
    assert "lv_size" in public


def test_replies_that_repeat_no_report_stay(tmp_path: Path) -> None:
    sources = read(make_cohort(tmp_path, 2), "uniform")
    assert without_reports(sources).replies.equals(sources.replies)
    assert WITHHELD not in shown(without_reports(sources))
