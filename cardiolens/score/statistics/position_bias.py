"""Position bias: preference for places in the list of options, whatever they hold (protocol 8.6, 16.8)."""

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.score.statistics.bootstrap import resampling_weights
from cardiolens.score.statistics.items import Floats
from cardiolens.score.statistics.metrics import ratio
from cardiolens.score.statistics.outcomes import flag_incomplete, judged_shares
from cardiolens.score.statistics.rows import as_row
from cardiolens.score.statistics.statistic import Basis, Statistic
from cardiolens.score.statistics.verdict_rows import cohort
from cardiolens.storage.schemas import READ, SCORES
from cardiolens.storage.tables import from_rows

POSITION_BIAS = "position_bias"
ORDER_BIAS = "order_bias"
_PLACES = 26


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
    rows: list[dict[str, object]] = []
    for arm in sorted({str(row["arm_id"]) for row in places}):
        of_arm = [row for row in places if row["arm_id"] == arm]
        patient = np.array([number[str(row["patient_id"])] for row in of_arm])
        chosen, right = (np.array([row[name] for row in of_arm]) for name in ("chosen", "right"))
        basis = Basis(len(of_arm), len(np.unique(patient)), 0, 0)
        for place in range(int((chosen + right).any(axis=0).nonzero()[0].max()) + 1):
            excess = _excess(chosen[:, place] - right[:, place], patient, weights)
            key = (f"{POSITION_BIAS}.{place + 1}", "tier:1")
            rows.append({"arm_id": arm} | as_row(key, Statistic(excess, basis), method))
    shares = judged_shares(verdicts)
    return from_rows([flag_incomplete(row, shares) for row in rows], SCORES)


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
    rows: list[dict[str, object]] = []
    for original_arm, reversed_arm in sorted(pairs):
        first, second = places_by_arm.get(original_arm, {}), places_by_arm.get(reversed_arm, {})
        common = sorted(first.keys() & second.keys())
        if common:
            preference = np.array([1 - first[item] - second[item] for item in common])
            patient = np.array([number[of_patient] for of_patient, _ in common])
            basis = Basis(len(common), len(np.unique(patient)), 0, 0)
            statistic = Statistic(_excess(preference, patient, weights), basis)
            rows.append({"arm_id": reversed_arm} | as_row((ORDER_BIAS, "tier:1"), statistic, method))
    shares = judged_shares(verdicts)
    return from_rows([flag_incomplete(row, shares) for row in rows], SCORES)


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


def _excess(difference: Floats, patient: np.ndarray, weights: Floats) -> Floats:
    units = weights.shape[1]
    total = weights @ np.bincount(patient, weights=difference, minlength=units)
    return ratio(total, weights @ np.bincount(patient, minlength=units).astype(np.float64))


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
