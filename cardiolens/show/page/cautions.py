"""Cautions of a page: sentences on what makes its numbers say less than they seem to."""

from cardiolens.score.statistics.bootstrap import FEWEST_FOR_CLAIM
from cardiolens.show.page.cards import too_few_items
from cardiolens.show.page.page_data import Facts


def cautions(facts: Facts) -> list[str]:
    """Return the cautions of a run, the gravest first."""
    dataset = facts.specs[0].dataset
    scored = {arm.model for row in facts.scores_of(["primary"], "tier:") if (arm := facts.arm(row["arm_id"]))}
    unscored = ", ".join(model for model in facts.models if model not in scored)
    versions = sorted({str(manifest["cardiolens"]) for manifest in facts.manifests})
    rules = (
        (
            facts.is_synthetic,
            "A synthetic cohort: phantoms that this software draws. No score here says how well a model "
            "reads a patient.",
        ),
        *(
            (
                facts.is_synthetic,
                f"{model} was trained on phantoms of the same kind; with options in another order it answers "
                "fewer questions right.",
            )
            for model in facts.packaged
        ),
        (
            facts.simulated.issuperset(facts.models),
            "Simulated readers only: these numbers test the software, not a model.",
        ),
        (
            facts.n_patients < FEWEST_FOR_CLAIM,
            f"{facts.patients_in_words}: with fewer than {FEWEST_FOR_CLAIM} this page claims nothing and "
            "prints no interval.",
        ),
        (
            "unverified" in dataset.allow,
            "Answers that nobody verified were allowed (dataset.allow=[unverified]).",
        ),
        (
            "public_hearts" in dataset.allow,
            "Pictures and labels are of public sets, which may be in the training data of any model: a high "
            "score may be memory. The answers are labels of the sets; nobody verified them for these "
            "questions.",
        ),
        (
            dataset.has_pictures,
            "Closed questions of a public benchmark alone. Its pictures, questions and answers may be in the "
            "training data of any model: a high score may be memory.",
        ),
        (bool(unscored) and bool(scored), f"Not in the scores, as no reply was judged: {unscored}."),
        (len(versions) > 1, f"The runs were made by versions {', '.join(versions)} of CardioLens."),
        (facts.is_unfinished, "Some requests have no answer yet: the scores are not final."),
    )
    sentences = [sentence for applies, sentence in rules if applies]
    too_few = too_few_items(facts)
    return [*sentences, *([too_few] if too_few else []), *_hospitals(facts)]


def _hospitals(facts: Facts) -> list[str]:
    return [str(row["sentence"]) for row in facts.analysis("hospitals")]
