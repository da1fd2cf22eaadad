"""Verdicts as the table of scores."""

import pyarrow as pa

from cardiolens.stats.answers import Answers
from cardiolens.stats.bootstrap import resampling_weights
from cardiolens.stats.differences import Families, Resampling, compared, difference_rows
from cardiolens.stats.items import cohort
from cardiolens.stats.landscape import Headlines, headline_rows
from cardiolens.stats.rows import as_row
from cardiolens.stats.statistic import Key, Statistic
from cardiolens.stats.status import judged_shares, marked
from cardiolens.tables import SCORES, from_rows


def score(
    verdicts: pa.Table,
    min_n: int,
    resamples: int,
    seed: int,
    families: Families | None = None,
    *,
    headlines: Headlines | None = None,
) -> pa.Table:
    """Scores of every arm with 95 % intervals, then paired differences of the pairs of each family of arms,
    then headlines of models, each a mean over arms.

    Values are percent, save those of `rows.OWN_UNIT` and p-values. Items that were not run stay out, and the
    method says where that leaves a cell incomplete. Rows of arms are sorted by (arm, scope, metric); neither
    order nor parts of `verdicts` change a digit.
    """
    patients = cohort(verdicts)
    sampling = Resampling(resampling_weights(len(patients), resamples, seed), min_n, seed)
    answers = Answers.of(verdicts, patients)
    shares = judged_shares(verdicts)
    rows: list[dict[str, object]] = []
    kept: dict[str, dict[Key, Statistic]] = {}
    for arm in answers.arms:
        found = sampling.statistics(answers.of_arm(arm))
        kept[arm] = compared(found)
        rows += [
            marked({"arm_id": arm} | as_row(key, found[key], sampling.method), shares)
            for key in sorted(found, key=lambda key: key[::-1])
        ]
    rows += difference_rows(answers, kept, families or {}, sampling)
    rows += headline_rows(kept, headlines or {}, sampling.method)
    return from_rows(rows, SCORES)
