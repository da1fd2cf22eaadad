"""Make a phantom cohort: `python jobs/make_phantom.py dataset=phantom_ci out=some/folder [masks=true]`."""

import sys
from contextlib import nullcontext
from pathlib import Path

from cardiolens.cluster.connect import ray_cluster
from cardiolens.config.compose import read_spec
from cardiolens.errors import InputError, RunError
from cardiolens.phantom.cohort import make_cohort, planned
from cardiolens.record.privacy import be_private

_OWN = ("out=", "masks=")
_WORTH_A_CLUSTER = 24  # studies; fewer are made before Ray would have started


def main(argv: list[str]) -> int:
    """Make the cohort of a dataset's phantom; return 2 if the input is wrong, 1 if making fails, else 0."""
    be_private()
    own = dict(word.split("=", 1) for word in argv if word.startswith(_OWN))
    masks = [f"dataset.phantom.masks={own['masks']}"] if "masks" in own else []
    try:
        spec = read_spec([*(word for word in argv if not word.startswith(_OWN)), *masks])
        if spec.dataset.phantom is None:
            raise InputError(
                f"dataset {spec.dataset.name!r} has no phantom; choose one of the phantom_* ones"
            )
        folder = Path(own.get("out", spec.dataset.studies.parent))
        many = len(planned(spec.dataset.phantom, folder)) >= _WORTH_A_CLUSTER
        with ray_cluster(spec.cluster) if many else nullcontext():
            make_cohort(spec.dataset.phantom, folder, spec.dataset.protocol)
    except (InputError, RunError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    print(f"phantom: {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
