"""Section on the reliability of the numbers: how questions ended, by arm."""

from collections import Counter

from cardiolens.show.page.columns import ARM, arm_cells, setting
from cardiolens.show.page.elements import Chart, Column, Section, Table
from cardiolens.show.page.page_data import Facts
from cardiolens.show.page.reply_readings import reading_tables

# in the order of the bars, and in words
ENDINGS = {
    "ok": "read",
    "asked_back": "read when asked back",
    "no_answer": "no answer when asked back",
    "inconsistent": "inconsistent",
    "contradicted": "contradicts itself",
    "parse_error": "not readable",
    "truncated": "cut off",
    "illegal_selection": "illegal selection",
    "refusal": "refused",
    "overflow": "too long for the model",
    "skipped": "skipped",
    "engine_error": "engine failed",
    "missing": "not run",
}


_AUDITS = (
    *(
        Column("model", "model"),
        Column("audited", "read by a person", "count"),
        Column("replies", "replies", "count"),
    ),
    *(Column("misread", "misread, %", "score"), Column("misread_low", "95 % from", "score")),
    *(Column("misread_high", "to", "score"), Column("missed", "missed, %", "score")),
    *(Column("missed_low", "95 % from", "score"), Column("missed_high", "to", "score")),
    *(Column("shift", "share right would move by", "points"), Column("shift_low", "95 % from", "points")),
    Column("shift_high", "to", "points"),
)
_NO_AUDIT = (
    "How often the rules misread a reply is not known of this run: python -m cardiolens.review audit "
    "run=<folder> shows a person a sample of the replies and tells it by model."
)


def reliability(facts: Facts) -> Section:
    """One bar per arm; only the first six kinds of ending enter a score."""
    question = "What stands behind each score: how many questions were answered, and how readably?"
    table = _table(facts)
    if not table.rows:
        return Section("reliability", "Reliability", question, absent="No question was planned.")
    chart = Chart(
        "endings-chart",
        "How questions ended",
        "endings",
        table,
        choices=("model",),
        note="No answer, not readable, cut off, illegal selection and refused count as wrong; unanswered "
        "ones are in no score.",
    )
    has_models = not facts.simulated.issuperset(facts.models)
    notes = (_NO_AUDIT,) if has_models and not facts.audits else ()
    tables = (*reading_tables(facts), *((_audits(facts),) if facts.audits else ()))
    return Section("reliability", "Reliability", question, figures=(chart,), tables=tables, notes=notes)


def _audits(facts: Facts) -> Table:
    """The replies of each model that a person read otherwise than the rules did."""
    records = [
        {"model": entry.model, "audited": entry.audited, "replies": entry.replies}
        | {
            f"{name}{suffix}": 100 * getattr(rate, end)
            for name, rate in (("misread", entry.misread), ("missed", entry.missed), ("shift", entry.shift))
            for suffix, end in (("", "value"), ("_low", "low"), ("_high", "high"))
        }
        for entry in facts.audits
    ]
    return Table.of("audits", "Replies that a person read", _AUDITS, records)


def _table(facts: Facts) -> Table:
    counts: Counter[tuple[str, str]] = Counter()
    total: Counter[str] = Counter()
    for row in facts.analysis("how requests ended").rows:
        if row["channel"] != "text":
            ending = str(row["parse_status"] or row["status"]).partition(":")[0]
            counts[row["arm_id"], ending] += row["n"]
            total[row["arm_id"]] += row["n"]
    records = [
        arm_cells(arm, facts.simulated)
        | {
            "arm": setting(arm),
            "ending": ENDINGS.get(ending, ending),
            "order": at,
            "n": counts[arm.arm_id, ending],
            "share": 100 * counts[arm.arm_id, ending] / total[arm.arm_id],
        }
        for arm in facts.arms
        for at, ending in enumerate(ENDINGS)
        if counts[arm.arm_id, ending]
    ]
    columns = (
        *(*ARM, Column("arm", "arm"), Column("order", "order", "count")),
        *(
            Column("ending", "ending"),
            Column("n", "questions", "count"),
            Column("share", "share, %", "score"),
        ),
    )
    return Table.of("endings_by_arm", "How questions ended, by arm", columns, records)
