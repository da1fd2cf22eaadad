"""Section on controls: scores when images are taken away, swapped or blanked, or options moved."""

import math

from cardiolens.score.statistics.position_bias import ORDER_BIAS, POSITION_BIAS
from cardiolens.show.page.columns import COUNTS, HIGH, LOW, METHOD, SCOPE, arm_cells, scope_words
from cardiolens.show.page.difference_table import difference_table, differences
from cardiolens.show.page.elements import Chart, Column, Section, Table
from cardiolens.show.page.page_data import Facts

_NAMES = {
    "text_shortcut": "text alone beyond the best constant answer",
    "image_gain": "image gain",
    ORDER_BIAS: "preference for first places, ordinal questions",
    "followed_wrong": "answers that follow a wrong suggestion",
    "followed_wrong_gain": "answers that follow a wrong suggestion, beyond those alike without it",
    "right_to_wrong": "right without, wrong after a wrong suggestion",
    "followed_right": "answers that follow a right suggestion",
    "followed_right_gain": "answers that follow a right suggestion, beyond those alike without it",
    "wrong_to_right": "wrong without, right after a right suggestion",
    "moved_with_lesion": "answers that move where the lesion is taken away and the truth moves",
    "right_with_and_without": "right both with the lesion and without, of these",
    "moved_without_cause": "answers that move where the truth stays",
}
_COLUMNS = (
    *(Column("model", "model"), Column("selector", "selection"), Column("budget", "K")),
    *(Column("prompt", "prompt"), Column("metric", "measure"), SCOPE),
    Column("value", "value", "points"),
    Column("low", LOW.title, "points"),
    Column("high", HIGH.title, "points"),
    *(*COUNTS, METHOD),
)


def controls(facts: Facts) -> Section:
    """Differences to each control, image gain, text shortcut and position bias."""
    question = "How much of a score comes from the images?"
    pairs = [difference for difference in differences(facts, "control") if difference.ours.control == "none"]
    comparisons = [difference for difference in pairs if not math.isnan(difference.row["value"])]
    measures = _measures(facts)
    if not comparisons and measures.rows:
        return Section("controls", "Controls", question, tables=(measures,))
    if not comparisons:
        absent = "This run has no control arm with judged answers (experiment=controls asks them)."
        return Section("controls", "Controls", question, absent=absent)
    table = difference_table(
        "control-differences", "With the right images, minus the control", comparisons, facts
    )
    chart = Chart(
        "control-differences-chart",
        "Score without control, minus the control",
        "forest",
        table,
        choices=("model", "scope"),
        note="Against blind: the image gain. Near zero against other_patient or blank: images are not used.",
    )
    findings = facts.analysis("controls").findings
    return Section("controls", "Controls", question, findings, (chart,), tables=(measures,))


def _measures(facts: Facts) -> Table:
    records = []
    for row in facts.analysis("controls").rows:
        metric, _, place = str(row["metric"]).partition(".")
        arm = facts.arm(row["arm_id"])
        if arm and (metric in _NAMES or metric == POSITION_BIAS):
            name = _NAMES.get(metric, f"position bias, place {place}")
            words = {"metric": name, "scope": scope_words(row["scope"])}
            records.append({**row, **arm_cells(arm, facts.simulated), **words})
    title = "Image gain, text shortcut, position bias, suggestions, lesions"
    return Table.of("control_measures", title, _COLUMNS, records)
