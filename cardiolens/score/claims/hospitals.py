"""How far a cohort of several hospitals speaks: of few, for these alone (amendments 17.5, 17.12)."""

from collections.abc import Collection, Mapping

from cardiolens.score.claims.analysis import Analysis
from cardiolens.score.statistics.hospital_codes import FEWEST_HOSPITALS

NAME = "hospitals"
ATTRIBUTE = "site"  # of study.json
_WORDS = {2: "two", 3: "three", 4: "four"}


def hospitals(subgroups: Mapping[str, Mapping[str, Collection[str]]], n_patients: int) -> Analysis:
    """One row with a sentence where the patients are known to come from two or more hospitals, else none.

    Hospitals are not named: a small one could identify patients.
    """
    by_site = {name: patients for name, patients in subgroups.get(ATTRIBUTE, {}).items() if patients}
    if len(by_site) < 2:
        return Analysis(NAME, [])
    known = len({patient for patients in by_site.values() for patient in patients})
    among = "" if known == n_patients else f" (known for {known} of {n_patients} patients)"
    sentence = f"The patients come from {_WORDS.get(len(by_site), len(by_site))} hospitals{among}: "
    if len(by_site) < FEWEST_HOSPITALS:
        sentence += (
            "scores, intervals and claims speak of these hospitals alone. Intervals are over patients; how "
            f"much other hospitals differ cannot be told from fewer than {FEWEST_HOSPITALS}."
        )
    elif among:
        sentence += (
            "scores, intervals and claims are over patients, as if hospitals did not differ, since not every "
            "patient's is known."
        )
    else:
        sentence += (
            "scores, intervals and claims of arms, models and questions take hospitals as random, with the t "
            f"distribution of {len(by_site)} hospitals. Confidence, positions, parts and subgroups are over "
            "patients."
        )
    return Analysis(NAME, [{"hospitals": len(by_site), "n_patients": known, "sentence": sentence}])
