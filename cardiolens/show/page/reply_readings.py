"""Tables of how replies were read: shares by model and arm, bounds of scores, and other rules of reading."""

from collections.abc import Sequence

from cardiolens.protocol.replies import peer_readings
from cardiolens.score.run_results import peer_scores, reading_shares
from cardiolens.score.run_results.run_analyses import AnalysisRow
from cardiolens.show.page.columns import ARM, arm_cells, scope_words, starred
from cardiolens.show.page.elements import Column, Table
from cardiolens.show.page.page_data import Facts

_SHARES = (
    Column("n", "replies", "count"),
    Column("at_once", "read at once, %", "score"),
    Column("asked_back", "asked back, %", "score"),
    Column("no_answer", "no answer (N), %", "score"),
    Column("unread", "unread, %", "score"),
    Column("refused", "refused, %", "score"),
    Column("cut", "cut off, %", "score"),
    Column("illegal_selection", "illegal selection, %", "score"),
)
_BOUNDS = tuple(
    Column(f"{name}_{tier.replace(':', '_')}", f"{tier.replace(':', ' ')}, {words}", "score")
    for tier in reading_shares.TIERS
    for name, words in (
        ("once", "asked back = wrong"),
        ("low", "as scored, unread = wrong"),
        ("high", "unread = right"),
    )
)


def reading_tables(facts: Facts) -> tuple[Table, ...]:
    """How replies were read by model and by arm, and scores by other rules if the run was judged by them."""
    rows = facts.analysis(reading_shares.NAME)
    tables = [_of_models(facts, rows), _of_arms(facts, rows), _of_peers(facts)]
    return tuple(table for table in tables if table.rows)


def _of_models(facts: Facts, rows: Sequence[AnalysisRow]) -> Table:
    columns = (Column("model", "model"), *_SHARES)
    records = [
        {**row, "model": starred(str(row["model"]), facts)} for row in rows if row.get("arm_id") is None
    ]
    return Table.of(
        "readings_by_model", "How replies to choice questions were read, by model", columns, records
    )


def _of_arms(facts: Facts, rows: Sequence[AnalysisRow]) -> Table:
    by_arm = {row["arm_id"]: row for row in rows}
    records = [
        {**by_arm[arm.arm_id], **arm_cells(arm, facts.simulated)}
        for arm in facts.arms
        if arm.arm_id in by_arm
    ]
    bounds = [column for column in _BOUNDS if any(column.name in record for record in records)]
    title = "How replies to choice questions were read, by arm, and scores between bounds"
    return Table.of("readings_by_arm", title, (*ARM, *_SHARES, *bounds), records)


def _of_peers(facts: Facts) -> Table:
    """Scores and ranks by the rules of others; empty unless the run was judged with reading=all."""
    records = [
        {**row, "model": starred(str(row["model"]), facts), "scope": scope_words(str(row["scope"]))}
        for row in facts.analysis(peer_scores.NAME)
    ]
    names = ((peer_scores.STRICT, "strict, with second turns"), *peer_readings.WORDS.items())
    columns = [Column("model", "model"), Column("scope", "on")]
    for name, words in names:
        columns += [Column(name, words, "score"), Column(f"{name}_rank", "rank", "count")]
    title = "Scores and ranks of models by the strict reading and by three rules of others"
    return Table.of("readings_of_peers", title, columns, records)
