"""Verdicts as the table of scores."""

from collections.abc import Collection, Iterable, Mapping

import pyarrow as pa

from cardiolens.stats.answers import Answers
from cardiolens.stats.bootstrap import resampling_weights
from cardiolens.stats.differences import Families, Resampling, compared, difference_rows
from cardiolens.stats.endings import judged_shares, marked
from cardiolens.stats.factors import ArmPair
from cardiolens.stats.headlines import Headlines, headline_rows, of_headline
from cardiolens.stats.items import cohort
from cardiolens.stats.repeats import repeat_rows
from cardiolens.stats.report_references import Forms
from cardiolens.stats.rows import Row, as_row
from cardiolens.stats.statistic import Key, Statistic
from cardiolens.tables import SCORES, from_rows


def score(
    verdicts: pa.Table,
    min_n: int,
    resamples: int,
    seed: int,
    families: Families | None = None,
    *,
    headlines: Headlines | None = None,
    gains: Collection[ArmPair] = (),
    repeats: Collection[ArmPair] = (),
    forms: Forms | None = None,
) -> pa.Table:
    """Scores of every arm with 95 % intervals, then paired differences of the pairs of each family of arms,
    then headlines of models, each a mean over arms.

    `gains` are pairs of an arm and the same shown no image: their difference is `image_gain` as well, and of
    the blind one there is `text_shortcut`, its score beyond the best constant answer; `repeats` are
    pairs of an arm and the same asked again, of which there is `answers_changed`. Reports have references
    where `forms` holds what their fields may hold.

    Values are percent, save those of `rows.OWN_UNIT` and p-values. Items that were not run stay out, and the
    method says where that leaves a cell incomplete. Rows of arms are sorted by (arm, scope, metric); neither
    order nor parts of `verdicts` change a digit.
    """
    patients = cohort(verdicts)
    sampling = Resampling(resampling_weights(len(patients), resamples, seed), min_n, seed, forms or {})
    answers = Answers.of(verdicts, patients)
    shares = judged_shares(verdicts)
    blind = {versus for _, versus in gains}
    rows: list[dict[str, object]] = []
    kept: dict[str, dict[Key, Statistic]] = {}
    of_headlines: dict[str, dict[Key, Statistic]] = {}
    for arm in answers.arms:
        found = sampling.statistics(answers.of_arm(arm))
        kept[arm], of_headlines[arm] = compared(found), of_headline(found)
        found |= _text_shortcuts(found) if arm in blind else {}
        named = sorted(found, key=lambda key: key[::-1])
        of_arm = [{"arm_id": arm} | as_row(key, found[key], sampling.method) for key in named]
        rows += [marked(row, shares) for row in of_arm]
    differences = difference_rows(answers, kept, families or {}, sampling)
    rows += [*differences, *_image_gains(differences, gains)]
    rows += repeat_rows(answers, repeats, sampling.weights, sampling.method)
    rows += headline_rows(of_headlines, headlines or {}, sampling.method)
    return from_rows(rows, SCORES)


def _image_gains(differences: Iterable[Row], gains: Collection[ArmPair]) -> list[dict[str, object]]:
    return [
        {**row, "metric": "image_gain"}
        for row in differences
        if row["metric"] == "primary" and (row["arm_id"], row["versus_arm_id"]) in gains
    ]


def _text_shortcuts(found: Mapping[Key, Statistic]) -> dict[Key, Statistic]:
    return {
        ("text_shortcut", scope): Statistic(
            statistic.values - found["primary.constant", scope].values, statistic.basis
        )
        for (metric, scope), statistic in found.items()
        if metric == "primary" and ("primary.constant", scope) in found
    }
