"""How far a cohort of few hospitals speaks: for these hospitals alone (amendment 17.5)."""

from collections.abc import Collection, Mapping

from cardiolens.score.claims.analysis import Analysis

NAME = "hospitals"
ATTRIBUTE = "site"  # of study.json
# From so many on, how hospitals differ could be estimated; of one, nothing hints at others.
ENOUGH = 5
_WORDS = {2: "two", 3: "three", 4: "four"}


def hospitals(subgroups: Mapping[str, Mapping[str, Collection[str]]], n_patients: int) -> Analysis:
    """One row with a sentence where the patients are known to come from two to four hospitals, else none.

    Hospitals are not named: a small one could identify patients.
    """
    by_site = {name: patients for name, patients in subgroups.get(ATTRIBUTE, {}).items() if patients}
    if not 1 < len(by_site) < ENOUGH:
        return Analysis(NAME, [])
    known = len({patient for patients in by_site.values() for patient in patients})
    among = "" if known == n_patients else f" (known for {known} of {n_patients} patients)"
    sentence = (
        f"The patients come from {_WORDS[len(by_site)]} hospitals{among}: scores, intervals and claims "
        "speak of these hospitals alone. Intervals are over patients; how much other hospitals differ cannot "
        f"be told from fewer than {ENOUGH}."
    )
    return Analysis(NAME, [{"hospitals": len(by_site), "n_patients": known, "sentence": sentence}])
