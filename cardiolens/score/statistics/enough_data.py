"""How many patients an interval and a claim need: the one rule of every score (amendment 17.1).

| patients | rarer class of AUROC | printed | a sentence may rest on it |
|---|---|---|---|
| below 8 | any | the number and its n | no |
| 8 or more | below 10 | the number and its n | no |
| 8 to 19 | 10 or more | with an interval | no |
| 20 or more | 10 or more | with an interval | yes |

Tables of a page follow this table. What is read as a result (the page's answers, the terminal, leaderboards)
prints an interval only where a sentence may rest on it: `evidence_analysis.interval_of`.
"""

# Of fewer patients a bootstrap has few distinct resamples: of 5, 126 in all, and an interval of nominal 95 %
# covered 23 % at a truth of 95 %.
FEWEST_FOR_INTERVAL = 8
# Of fewer, the percentiles of resamples are too rough for a claim, however they are widened.
FEWEST_FOR_CLAIM = 20
# Patients of the rarer class that an AUROC needs: with 3, all resamples that hold the same three patients
# agree, and a coin was "better than a coin" in 58 of 60 simulated runs.
FEWEST_OF_CLASS = 10


def reason_for_none(patients: int, of_rarer_class: int | None = None) -> str:
    """Why a statistic of so many patients has no interval; empty if it may have one."""
    if patients < FEWEST_FOR_INTERVAL:
        return f"no interval: fewer than {FEWEST_FOR_INTERVAL} patients"
    if of_rarer_class is not None and of_rarer_class < FEWEST_OF_CLASS:
        return f"no interval: fewer than {FEWEST_OF_CLASS} patients of the rarer class"
    return ""
