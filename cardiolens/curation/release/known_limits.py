"""The limits of a release that its own facts show, and those that every release has."""

from collections.abc import Iterator, Mapping
from typing import Any

from cardiolens.curation.release.population import ATTRIBUTES, NOT_TOLD
from cardiolens.protocol.tasks.catalogue import Catalogue

FEW = 5  # questions of one subtask; the page of a sweep leaves smaller subtasks out of its means
ALWAYS = (
    "It is for research on models that read images, and measures no benefit to patients.",
    "Cohorts are drawn by patient at random; they are not balanced for answers, scanners or ages.",
    "How often a question can be answered without its images differs by model; `control=[blind]` of a sweep "
    "measures it.",
    "How the holder of the data chose these studies among all patients is not recorded.",
)


def known_limits(facts: Mapping[str, Any], catalogue: Catalogue) -> list[str]:
    """Return a sentence for each limit: of answers, subgroups and duplicates; then those of every release."""
    return [*_of_answers(facts, catalogue), *_of_subgroups(facts), *_of_duplicates(facts), *ALWAYS]


def _of_answers(facts: Mapping[str, Any], catalogue: Catalogue) -> Iterator[str]:
    if unverified := facts["questions"] - facts["verified"]:
        yield f"Nobody verified {unverified} of {facts['questions']} answers."
    if small := facts.get("small_batches"):
        yield (
            f"{small} of {facts['questions']} answers were verified in a batch of fewer than 35 questions: "
            "two people agreed, but so few cannot show that 90 % of such answers would be accepted."
        )
    unmeasured = sum(row["questions"] for row in facts["agreement"] if row["kappa"] is None)
    if unmeasured:
        yield f"Agreement of two readers is not known for {unmeasured} of {facts['questions']} questions."
    counts = facts["subtasks"]
    if few := [name for name, by_answer in counts.items() if by_answer["questions"] < FEW]:
        yield f"Fewer than {FEW} questions each: {', '.join(few)}."
    absent = [
        f"{name} {', '.join(missing)}"
        for name, by_answer in counts.items()
        if (missing := [key for key in catalogue[name].keys if key not in by_answer])
    ]
    withheld = facts.get("withheld", ())
    if any(catalogue[name].parent for cohort in withheld for name in facts["asked"][cohort]):
        yield "That a conditional question is asked tells its parent's answer, also where it is withheld."
    if absent and not withheld:
        yield f"Options that are the answer of no question: {'; '.join(absent)}."


def _of_subgroups(facts: Mapping[str, Any]) -> Iterator[str]:
    silent = []
    for name in ATTRIBUTES:
        told = [groups[name] for groups in facts["subgroups"].values() if name in groups]
        values = {value for counts in told for value in counts}
        if not told:
            silent.append(name)
        elif NOT_TOLD in values or len(told) < len(facts["subgroups"]):
            yield f"The {name} of some studies is not told."
        elif len(values) == 1:
            yield f"All studies have one {name}: {next(iter(values))}."
    if silent:
        yield f"Of no study is told: {', '.join(silent)}."


def _of_duplicates(facts: Mapping[str, Any]) -> Iterator[str]:
    if count := facts["duplicates"]["across_cohorts"]:
        yield f"**{count} volumes are in two cohorts**, which their patients' ids do not show."
