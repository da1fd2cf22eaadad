"""Section on cohorts: the full cohort beside named parts of it, such as the public one."""

from cardiolens.base.phrasing import counted
from cardiolens.score.claims import sentences, subgroups
from cardiolens.score.claims.evidence_analysis import Evidence, by_interval
from cardiolens.score.claims.sentences import Finding
from cardiolens.score.run_results.run_analyses import AnalysisRow
from cardiolens.score.statistics.headlines import PREFIX
from cardiolens.show.page.columns import COUNTS, HIGH, LOW, METHOD, SCOPE, VALUE, scope_words, subtask_words
from cardiolens.show.page.difference_table import READINGS
from cardiolens.show.page.elements import Chart, Column, Section, Table
from cardiolens.show.page.page_data import Facts

_TITLE = "Full and public cohort"
_COLUMNS = (
    *(Column("part", "cohort part"), Column("line", "model"), SCOPE),
    *(Column("full", "full", "score"), Column("of_part", "part", "score")),
    Column("value", "full − part", "points"),
    Column("low", LOW.title, "points"),
    Column("high", HIGH.title, "points"),
    Column("reading", "reading"),
    *(*COUNTS, METHOD),
)
_SUBGROUPS = (
    *(Column("attribute", "attribute"), Column("subgroup", "subgroup"), Column("model", "model"), SCOPE),
    *(VALUE, LOW, HIGH, *COUNTS, METHOD),
)
_SHIFTS = (
    *(Column("part", "part"), Column("subtask", "subtask")),
    Column("value", "shift of true answers", "score"),
)


def _reading(row: AnalysisRow, evidence: Evidence) -> str:
    return READINGS["open" if sentences.change("", "", row, evidence).side is None else "shown"]


def cohorts(facts: Facts) -> Section:
    """Headline scores on the full cohort and on each part, and the shift of true answers between them."""
    question = "Would the public part of the cohort have told the same story?"
    notes = _preparation(facts)
    records: list[AnalysisRow] = []
    shifts: list[AnalysisRow] = []
    findings: list[Finding] = []
    for name, analysis in facts.analyses.items():
        if not name.startswith("full versus "):
            continue
        part = name.removeprefix("full versus ").removesuffix(" cohort")
        findings += analysis.findings
        real = {f"{PREFIX}{model}" for model in set(facts.models) - facts.simulated}
        scores = [row for row in analysis.rows if row["metric"] == "primary" and row["arm_id"] in real]
        evidence = dict(zip(map(id, scores), by_interval(scores), strict=True))
        for row in analysis.rows:
            if row["metric"] == "primary":
                model = str(row["arm_id"]).removeprefix(PREFIX)
                star = "*" if model in facts.simulated else ""
                words = {"part": part, "model": f"{model}{star}", "scope": scope_words(row["scope"])}
                words |= {"line": words["model"], "reading": _reading(row, evidence.get(id(row), Evidence()))}
                records.append({**row, "of_part": row["part"], **words})
            elif row["metric"] == "gold_shift":
                shifts.append(
                    {
                        **row,
                        "part": part,
                        "subtask": subtask_words(facts, str(row["scope"]).removeprefix("subtask:")),
                    }
                )
    groups = _subgroups(facts)
    if not records:
        absent = "No part of the cohort is named in the studies, or no headline score exists."
        return Section("cohorts", _TITLE, question, tables=groups, notes=notes, absent=absent)
    table = Table.of("cohort_differences", "Full cohort minus part", _COLUMNS, records)
    chart = Chart(
        "cohort-differences-chart", "Full cohort minus part", "forest", table, choices=("part", "scope")
    )
    shift_table = Table.of("gold_shifts", "How far true answers shift", _SHIFTS, shifts)
    return Section(
        "cohorts",
        _TITLE,
        question,
        tuple(findings),
        (chart,),
        tables=(shift_table, *groups),
        notes=notes,
    )


def _preparation(facts: Facts) -> tuple[str, ...]:
    """Warnings of study preparation, and what it inferred where study.json declares nothing."""
    counts: dict[str, int] = {}
    for manifest in facts.manifests:
        preparation = manifest.get("preparation", {})
        for kind, words in (("warnings", "To be looked at"), ("found", "Found in the pixels")):
            for message, n_studies in preparation.get(kind, {}).items():
                counts[f"{words}: {message}"] = max(n_studies, counts.get(f"{words}: {message}", 0))
    entries = sorted(counts.items(), key=lambda entry: (not entry[0].startswith("To be"), entry[0]))
    return tuple(f"{message} ({counted(n_studies, 'study')})" for message, n_studies in entries)


def _subgroups(facts: Facts) -> tuple[Table, ...]:
    """Headlines by subgroup, where manifests name sex, age band, vendor, field strength or site."""
    records = [
        {**row, "model": _model_name(row, facts), "scope": scope_words(row.get("scope") or "")}
        for row in facts.analysis(subgroups.NAME).rows
    ]
    table = Table.of("subgroups", "Headline scores by subgroup of patients", _SUBGROUPS, records)
    return (table,) if records else ()


def _model_name(row: AnalysisRow, facts: Facts) -> str:
    model = str(row.get("arm_id") or "").removeprefix(PREFIX)
    return f"{model}*" if model in facts.simulated else model
