"""What controls do to answers: order of options, lost lesions (protocol 8.6).

Functions take the verdicts of an arm or of a pair, with the options as displayed, over tier 1.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from cardiolens.base.phrasing import counted
from cardiolens.protocol.tasks.questions import original_of
from cardiolens.score.statistics.item_scores import ItemScores, judged_answers
from cardiolens.score.statistics.statistic import Row
from cardiolens.storage.schemas import READ

POSITION_BIAS, ORDER_BIAS = "position_bias", "order_bias"
MOVED, FOLLOWED, STRAYED = "moved_with_lesion", "right_with_and_without", "moved_without_cause"
_ORDINAL = "ordinal"


def position_scores(arm: str, rows: pa.Table, scores: ItemScores) -> Iterator[Row]:
    """How often each displayed place is chosen, minus how often it is right, whatever it holds.

    Metrics are `position_bias.1`, `position_bias.2`, ... over answers that were read. Ordinal questions,
    with options that are never shuffled, are left out.
    """
    items = [
        row
        for row in judged_answers(rows, tier=1)
        if row["parse_status"] in READ and row["answer_type"] != _ORDINAL and row["option_keys"]
    ]
    named = (row["option_keys"].index(key) for row in items for key in {*row["parsed"], *row["gold"]})
    for place in range(1 + max(named, default=-1)):
        excess = [
            sum(
                (key in row["parsed"]) - (key in row["gold"]) for key in row["option_keys"][place : place + 1]
            )
            for row in items
        ]
        yield scores.mean(arm, f"{POSITION_BIAS}.{place + 1}", np.array(excess, np.float64), items)


def order_scores(pair: tuple[str, str], rows: pa.Table, scores: ItemScores) -> Iterator[Row]:
    """Preference for first places on ordinal questions; `pair`: the original, then the reversed order.

    For an item read in both orders the places of the chosen option, 0 first to 1 last, add up to 1 if the
    answer follows the meaning, however conservative, and to 0 if it is always the first. The metric is 1
    minus that sum.
    """
    first, second = (_ordinal_places(rows, arm) for arm in pair)
    common = sorted(first.keys() & second.keys())
    if common:
        preference = np.array([1 - first[item][0] - second[item][0] for item in common])
        yield scores.mean(pair[1], ORDER_BIAS, preference, [second[item][1] for item in common])


def _ordinal_places(rows: pa.Table, arm: str) -> dict[tuple[str, str], tuple[float, Row]]:
    """Displayed place of the chosen option, 0 to 1, by patient and item."""
    return {
        (row["patient_id"], row["qa_id"]): (keys.index(row["parsed"][0]) / (len(keys) - 1), row)
        for row in judged_answers(rows, tier=1, arm_id=arm, answer_type=_ORDINAL)
        for keys in [row["option_keys"]]
        if row["parsed"] and len(row["parsed"]) == 1 and row["parsed"][0] in keys
    }


def lesion_scores(pair: tuple[str, str], rows: pa.Table, scores: ItemScores) -> Iterator[Row]:
    """Score an arm against that on twins without lesions; `pair`: the plain arm, then that on twins.

    Items are questions on a heart and on its twin. Where the true answer differs between them, the answer
    must move; where it is the same, it must not. An answer moved if both replies were read and name other
    options. Items without a changed frame may be one request, and its answer cannot move: the method says how
    many.
    """
    plain, twins = (_by_question(rows, arm) for arm in pair)
    both = [
        (plain[original], twin)
        for qa_id, twin in sorted(twins.items())
        if (original := original_of(qa_id)) in plain
    ]
    must = [row["gold"] != twin["gold"] for row, twin in both]
    measures = (MOVED, True, _moved), (FOLLOWED, True, _is_right), (STRAYED, False, _moved)
    for metric, is_caused, measured in measures:
        pairs = [items for items, caused in zip(both, must, strict=True) if caused == is_caused]
        if both:
            n_same = sum(row["request_key"] == twin["request_key"] for row, twin in pairs)
            note = f"{counted(n_same, 'item')} of one request for both" if n_same else ""
            answers = [_worse_read(*items) for items in pairs]
            values = np.array([measured(*items) for items in pairs], np.float64)
            yield scores.mean(pair[1], metric, values, answers, note)


def _moved(row: Row, twin: Row) -> bool:
    read = row["parse_status"] in READ and twin["parse_status"] in READ
    return read and set(row["parsed"] or ()) != set(twin["parsed"] or ())


def _is_right(row: Row, twin: Row) -> bool:
    return bool(row["correct"] and twin["correct"])


def _worse_read(row: Row, twin: Row) -> Row:
    """The row of two that was not read, if one was not; as of the patient of the plain one."""
    unread = twin if row["parse_status"] in READ else row
    return {**row, "parse_status": unread["parse_status"]}


def _by_question(rows: pa.Table, arm: str) -> dict[str, Row]:
    return {row["qa_id"]: row for row in judged_answers(rows, tier=1, arm_id=arm)}
