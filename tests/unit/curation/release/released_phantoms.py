"""A release of phantom studies in two cohorts, with its frames in the tables."""

from pathlib import Path

from cardiolens.config.dataset import PhantomSpec
from cardiolens.phantom.phantom_cohort import make_cohort
from tests.unit.given_words import release

COHORTS = ("dev", "test-b")


def release_phantoms(root: Path, *more: str) -> Path:
    """Write three studies and a release of them below `root`; return the release."""
    make_cohort(PhantomSpec(n_sampled=3), root / "phantoms")
    words = [f"questions={root}/phantoms/questions.jsonl", f"studies={root}/phantoms/studies"]
    words += [f"out={root}/ours", "name=ours", "licence=CC-BY-4.0", "cohorts=dev:0.34,test-b:0.66", *more]
    assert release(words) == 0
    return root / "ours"
