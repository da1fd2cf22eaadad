"""What the list of options and a colleague's suggestion do to answers (protocol 8.6, 16.8).

Position bias is a preference for places in the list of options, whatever they hold. For a part of the arms,
functions take the sorted `patients` of all.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.protocol.prompts.question import LEADING, suggested
from cardiolens.score.statistics.arm_statistics import item_mean
from cardiolens.score.statistics.bootstrap import resampling_weights
from cardiolens.score.statistics.confidence import rows_of
from cardiolens.score.statistics.items import Floats
from cardiolens.score.statistics.statistic import Basis, Statistic, as_row
from cardiolens.score.statistics.verdict_rows import cohort, judged_shares
from cardiolens.storage.schemas import READ

POSITION_BIAS, ORDER_BIAS = "position_bias", "order_bias"
_PLACES = 26
# By control: answers with the suggested option; these minus the same without it; answers that turned.
_MEASURES = {
    "leading": ("followed_wrong", "followed_wrong_gain", "right_to_wrong"),
    "leading_right": ("followed_right", "followed_right_gain", "wrong_to_right"),
}
SUGGESTIONS = frozenset(metric for metrics in _MEASURES.values() for metric in metrics)
_COLUMNS = ("arm_id", "qa_id", "patient_id", "parsed", "gold", "correct", "parse_status")


def position_scores(
    verdicts: pa.Table,
    requests: pa.Table,
    resamples: int,
    seed: int,
    *,
    patients: Sequence[str] | None = None,
) -> pa.Table:
    """How often each displayed place is chosen, minus how often it is right, by arm, over parsed answers.

    Rows as those of `scores`, metrics `position_bias.1`, `position_bias.2`, ..., scope `tier:1`. Ordinal
    questions, whose options are never shuffled, are left out. Without shuffling places stand for the
    options. For a part of the arms pass the sorted `patients` of all.
    """
    patients = cohort(verdicts) if patients is None else patients
    weights = resampling_weights(len(patients), resamples, seed)
    method = f"expanded percentile cluster bootstrap, B={resamples}, seed {seed}"
    own_requests = requests.filter(pc.is_in(requests["arm_id"], value_set=pc.unique(verdicts["arm_id"])))
    places = _places(verdicts, own_requests)
    number = {patient: at for at, patient in enumerate(patients)}
    rows: list[dict[str, Any]] = []
    for arm in sorted({str(row["arm_id"]) for row in places}):
        of_arm = [row for row in places if row["arm_id"] == arm]
        patient = np.array([number[str(row["patient_id"])] for row in of_arm])
        chosen, right = (np.array([row[name] for row in of_arm]) for name in ("chosen", "right"))
        basis = Basis(len(of_arm), len(np.unique(patient)), 0, 0)
        for place in range(int((chosen + right).any(axis=0).nonzero()[0].max()) + 1):
            excess = item_mean(chosen[:, place] - right[:, place], patient, weights)
            key = (f"{POSITION_BIAS}.{place + 1}", "tier:1")
            rows.append({"arm_id": arm} | as_row(key, Statistic(excess, basis), method))
    return rows_of(rows, judged_shares(verdicts))


def order_scores(
    verdicts: pa.Table,
    requests: pa.Table,
    pairs: Collection[tuple[str, str]],
    resamples: int,
    seed: int,
    *,
    patients: Sequence[str] | None = None,
) -> pa.Table:
    """Preference for first places on ordinal questions, by arm with reversed options (protocol 16.8).

    `pairs`: arms in original order, each with its reversed arm. For an item read in both orders the places of
    the chosen option, 0 first to 1 last, add up to 1 if the answer follows the meaning, however
    conservative, and to 0 if it is always the first. The metric is 1 minus that sum.
    For a part of the arms pass the sorted `patients` of all.
    """
    patients = cohort(verdicts) if patients is None else patients
    weights = resampling_weights(len(patients), resamples, seed)
    method = f"expanded percentile cluster bootstrap, B={resamples}, seed {seed}"
    number = {patient: at for at, patient in enumerate(patients)}
    arms = pa.array(sorted({arm for pair in pairs for arm in pair}), pa.string())
    tables = (table.filter(pc.is_in(table["arm_id"], value_set=arms)) for table in (verdicts, requests))
    places_by_arm = _ordinal_places(*tables)
    rows: list[dict[str, Any]] = []
    for original_arm, reversed_arm in sorted(pairs):
        first, second = places_by_arm.get(original_arm, {}), places_by_arm.get(reversed_arm, {})
        common = sorted(first.keys() & second.keys())
        if common:
            preference = np.array([1 - first[item] - second[item] for item in common])
            patient = np.array([number[of_patient] for of_patient, _ in common])
            basis = Basis(len(common), len(np.unique(patient)), 0, 0)
            statistic = Statistic(item_mean(preference, patient, weights), basis)
            rows.append({"arm_id": reversed_arm} | as_row((ORDER_BIAS, "tier:1"), statistic, method))
    return rows_of(rows, judged_shares(verdicts))


def _ordinal_places(verdicts: pa.Table, requests: pa.Table) -> dict[str, dict[tuple[str, str], float]]:
    """Displayed place of the chosen option, 0 to 1, by arm, then by patient and item."""
    displayed = _displayed_keys(requests)
    is_ordinal = pc.and_(pc.equal(verdicts["tier"], 1), pc.equal(verdicts["answer_type"], "ordinal"))
    columns = ["arm_id", "qa_id", "patient_id", "parsed"]
    places: dict[str, dict[tuple[str, str], float]] = {}
    for row in verdicts.filter(pc.fill_null(is_ordinal, False)).select(columns).to_pylist():
        keys = displayed[row["arm_id"], row["qa_id"]]
        if row["parsed"] and len(row["parsed"]) == 1 and row["parsed"][0] in keys:
            place = keys.index(row["parsed"][0]) / (len(keys) - 1)
            places.setdefault(row["arm_id"], {})[row["patient_id"], row["qa_id"]] = place
    return places


def _displayed_keys(requests: pa.Table) -> dict[tuple[str, str], list[str]]:
    """Option keys as displayed, by arm and item."""
    rows = requests.select(["arm_id", "qa_id", "option_keys"]).to_pylist()
    return {(row["arm_id"], row["qa_id"]): row["option_keys"] for row in rows}


def _places(verdicts: pa.Table, requests: pa.Table) -> list[dict[str, object]]:
    """Parsed answers of tier 1, with flags for the chosen and the right displayed places."""
    displayed = _displayed_keys(requests)
    is_parsed = pc.and_(pc.equal(verdicts["tier"], 1), pc.is_in(verdicts["parse_status"], pa.array(READ)))
    is_parsed = pc.and_(is_parsed, pc.not_equal(verdicts["answer_type"], "ordinal"))
    columns = ["arm_id", "qa_id", "patient_id", "parsed", "gold"]
    rows = verdicts.filter(pc.fill_null(is_parsed, False)).select(columns).to_pylist()
    return [
        {
            "arm_id": row["arm_id"],
            "patient_id": row["patient_id"],
            "chosen": _flags(row["parsed"], displayed[row["arm_id"], row["qa_id"]]),
            "right": _flags(row["gold"], displayed[row["arm_id"], row["qa_id"]]),
        }
        for row in rows
        if displayed.get((row["arm_id"], row["qa_id"]))
    ]


def _flags(keys: list[str], displayed: list[str]) -> list[int]:
    return [int(place < len(displayed) and displayed[place] in keys) for place in range(_PLACES)]


def suggestion_scores(
    verdicts: pa.Table,
    requests: pa.Table,
    pair: tuple[str, str],
    resamples: int,
    seed: int,
    *,
    control: str,
    patients: Sequence[str] | None = None,
) -> pa.Table:
    """Score an arm under a leading control against the same arm without control, over tier 1.

    `pair`: the plain arm, then the leading one. Items are those asked in both, to which an option was
    suggested. An unreadable reply follows no suggestion and is wrong. `right_to_wrong` is the share that is
    wrong after a wrong suggestion, of the items that were right without; `wrong_to_right` the reverse.
    For a part of the arms pass the sorted `patients` of all.
    """
    patients = cohort(verdicts) if patients is None else patients
    weights = resampling_weights(len(patients), resamples, seed)
    method = f"expanded percentile cluster bootstrap, B={resamples}, seed {seed}"
    number = {patient: at for at, patient in enumerate(patients)}
    plain, leading = (_answers(verdicts, arm) for arm in pair)
    keys = {row["qa_id"]: row["option_keys"] for row in _requests(requests, pair[1])}
    items = [
        (number[row["patient_id"]], plain[qa_id], row, key)
        for qa_id, row in sorted(leading.items())
        if qa_id in plain and (key := suggested(control, qa_id, keys.get(qa_id) or (), row["gold"] or ()))
    ]
    if not items:
        return rows_of([], {})
    patient = np.array([item[0] for item in items])
    before = np.array([_holds(row, key) for _, row, _, key in items])
    after = np.array([_holds(row, key) for _, _, row, key in items])
    right = np.array([bool(row["correct"]) for _, row, _, _ in items])
    right_after = np.array([bool(row["correct"]) for _, _, row, _ in items])
    is_at_risk = ~right if LEADING[control] else right
    every = np.ones(len(items), bool)
    values: list[tuple[Floats, Any]] = [
        (after.astype(float), every),
        (after.astype(float) - before, every),
        ((right_after != right).astype(float), is_at_risk),
    ]
    unread = sum(row["parse_status"] not in READ for _, _, row, _ in items)
    rows = [
        {"arm_id": pair[1]}
        | as_row(
            (metric, "tier:1"),
            Statistic(
                item_mean(value[where], patient[where], weights),
                Basis(int(where.sum()), len(np.unique(patient[where])), unread, 0),
            ),
            method,
        )
        for metric, (value, where) in zip(_MEASURES[control], values, strict=True)
    ]
    return rows_of(rows, judged_shares(verdicts))


def _answers(verdicts: pa.Table, arm: str) -> dict[str, dict[str, Any]]:
    """Return the judged answers of an arm on tier 1, by question."""
    is_own = pc.and_(pc.equal(verdicts["arm_id"], arm), pc.equal(verdicts["tier"], 1))
    is_own = pc.and_(is_own, pc.equal(verdicts["channel"], "answer"))
    rows = verdicts.filter(pc.fill_null(is_own, False)).select(list(_COLUMNS)).to_pylist()
    return {row["qa_id"]: row for row in rows}


def _requests(requests: pa.Table, arm: str) -> Collection[dict[str, Any]]:
    rows = requests.filter(pc.equal(requests["arm_id"], arm)).select(["qa_id", "option_keys"]).to_pylist()
    return list(rows)


def _holds(row: Mapping[str, Any], key: str) -> bool:
    return row["parse_status"] in READ and key in (row["parsed"] or ())
