"""Section on cohorts: the full cohort beside named parts of it, such as the public one."""

from cardiolens.findings import sentences
from cardiolens.findings.evidence import Evidence, by_interval
from cardiolens.findings.sentences import Finding
from cardiolens.page.columns import COUNTS, HIGH, LOW, METHOD, SCOPE, scope_words, subtask_words
from cardiolens.page.differences import READINGS
from cardiolens.page.elements import Chart, Column, Section, Table
from cardiolens.page.facts import Facts
from cardiolens.results.analyses import AnalysisRow
from cardiolens.stats.headlines import PREFIX

_COLUMNS = (
    *(Column("part", "cohort part"), Column("line", "model"), SCOPE),
    *(Column("full", "full", "score"), Column("of_part", "part", "score")),
    Column("value", "full − part", "points"),
    Column("low", LOW.title, "points"),
    Column("high", HIGH.title, "points"),
    Column("reading", "reading"),
    *(*COUNTS, METHOD),
)
_SHIFTS = (
    *(Column("part", "part"), Column("subtask", "subtask")),
    Column("value", "shift of true answers", "score"),
)


def _reading(row: AnalysisRow, evidence: Evidence) -> str:
    change = sentences.change("", "", row, evidence)
    return READINGS["open" if change.verdict == "cannot tell" else "shown"]


def cohorts(facts: Facts) -> Section:
    """Headline scores on the full cohort and on each part, and the shift of true answers between them."""
    question = "Would the public part of the cohort have told the same story?"
    records: list[AnalysisRow] = []
    shifts: list[AnalysisRow] = []
    told: list[Finding] = []
    for name, analysis in facts.analyses.items():
        if not name.startswith("full versus "):
            continue
        part = name.removeprefix("full versus ").removesuffix(" cohort")
        told += analysis.findings
        scores = [row for row in analysis.rows if row["metric"] == "primary"]
        evidence = dict(zip(map(id, scores), by_interval(scores), strict=True))
        for row in analysis.rows:
            if row["metric"] == "primary":
                model = str(row["arm_id"]).removeprefix(PREFIX)
                star = "*" if model in facts.simulated else ""
                words = {"part": part, "model": f"{model}{star}", "scope": scope_words(row["scope"])}
                words |= {"line": words["model"], "reading": _reading(row, evidence[id(row)])}
                records.append({**row, "of_part": row["part"], **words})
            elif row["metric"] == "gold_shift":
                shifts.append(
                    {
                        **row,
                        "part": part,
                        "subtask": subtask_words(facts, str(row["scope"]).removeprefix("subtask:")),
                    }
                )
    if not records:
        absent = "No part of the cohort is named in the studies, or no headline score exists."
        return Section("cohorts", "Full and public cohort", question, absent=absent)
    table = Table.of("cohort_differences", "Full cohort minus part", _COLUMNS, records)
    chart = Chart(
        "cohort-differences-chart", "Full cohort minus part", "forest", table, choices=("part", "scope")
    )
    moved = Table.of("gold_shifts", "How far true answers shift", _SHIFTS, shifts)
    return Section("cohorts", "Full and public cohort", question, tuple(told), (chart,), tables=(moved,))
