"""How answers change when a heart loses its lesion and nothing else: where they must, and elsewhere."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base.phrasing import counted
from cardiolens.protocol.tasks.twins import original_of
from cardiolens.score.statistics.bootstrap import resampling_weights
from cardiolens.score.statistics.confidence import rows_of
from cardiolens.score.statistics.metrics import ratio
from cardiolens.score.statistics.statistic import Basis, Statistic, as_row
from cardiolens.score.statistics.verdict_rows import cohort, judged_shares
from cardiolens.storage.schemas import READ

MOVED, FOLLOWED, STRAYED = "moved_with_lesion", "right_with_and_without", "moved_without_cause"
LESION_METRICS = frozenset({MOVED, FOLLOWED, STRAYED})


def lesion_scores(
    verdicts: pa.Table,
    pair: tuple[str, str],
    resamples: int,
    seed: int,
    patients: Sequence[str] | None = None,
) -> pa.Table:
    """Score an arm against that on twins, over tier 1; `pair`: the plain arm, then that on twins.

    Items are questions on a heart and on its twin. Where the true answer differs between them, the answer
    must move; where it is the same, it must not. An answer moved if both replies were read and name other
    options. Items without a changed frame may be one request, whose answer cannot move: the method says how
    many.
    """
    names = sorted(patients or cohort(verdicts))
    place = {patient: at for at, patient in enumerate(names)}
    plain, twins = (_answers(verdicts, arm) for arm in pair)
    originals = {original_of(qa_id): row for qa_id, row in sorted(twins.items())}
    both = [(plain[qa_id], row) for qa_id, row in originals.items() if qa_id in plain]
    if not both:
        return rows_of([], {})
    weights = resampling_weights(len(names), resamples, seed)
    method = f"expanded percentile cluster bootstrap, B={resamples}, seed {seed}"
    patient = np.array([place[row["patient_id"]] for row, _ in both])
    must = np.array([row["gold"] != twin["gold"] for row, twin in both])
    read = np.array([all(answer["parse_status"] in READ for answer in items) for items in both])
    moved = np.array([set(row["parsed"] or ()) != set(twin["parsed"] or ()) for row, twin in both]) & read
    shares_request = np.array([row["request_key"] == twin["request_key"] for row, twin in both])
    right = np.array([bool(row["correct"] and twin["correct"]) for row, twin in both])
    rows = []
    for metric, values, where in ((MOVED, moved, must), (FOLLOWED, right, must), (STRAYED, moved, ~must)):
        total, number = (
            weights @ np.bincount(patient[where], part[where].astype(np.float64), weights.shape[1])
            for part in (values, np.ones(len(both)))
        )
        n_patients, n_unread = len(np.unique(patient[where])), int((~read & where).sum())
        note = _note(int((shares_request & where).sum()))
        basis = Basis(int(where.sum()), n_patients, n_unread, 0, note)
        row = as_row((metric, "tier:1"), Statistic(ratio(total, number), basis), method)
        rows.append({"arm_id": pair[1]} | row)
    return rows_of(rows, judged_shares(verdicts))


def _note(n_same: int) -> str:
    return f"{counted(n_same, 'item')} of one request for both" if n_same else ""


def _answers(verdicts: pa.Table, arm: str) -> dict[str, dict[str, Any]]:
    """Return the judged answers of an arm on tier 1, by question."""
    columns = {"arm_id": arm, "tier": 1, "channel": "answer", "status": "judged"}
    for name, value in columns.items():
        verdicts = verdicts.filter(pc.equal(verdicts[name], value))
    return {row["qa_id"]: row for row in verdicts.drop_columns(["counts"]).to_pylist()}
