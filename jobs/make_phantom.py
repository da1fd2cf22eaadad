"""Make a phantom cohort: `python jobs/make_phantom.py dataset=phantom_demo out=some/folder [masks=true]`."""

import sys
from pathlib import Path

from cardiolens.configure import read_spec
from cardiolens.errors import InputError, RunError
from cardiolens.phantom.cohort import make_cohort


def main(argv: list[str]) -> int:
    """Make the cohort of a dataset's phantom; 2 if the input is wrong, 1 if it could not be made."""
    own = dict(word.split("=", 1) for word in argv if word.startswith(("out=", "masks=")))
    masks = [f"dataset.phantom.masks={own['masks']}"] if "masks" in own else []
    try:
        dataset = read_spec(
            [word for word in argv if not word.startswith(("out=", "masks="))] + masks
        ).dataset
        if dataset.phantom is None:
            raise InputError(f"dataset {dataset.name!r} has no phantom; choose one of the phantom_* datasets")
        folder = Path(own.get("out", dataset.studies.parent))
        make_cohort(dataset.phantom, folder)
    except (InputError, RunError) as error:
        print(error, file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    print(f"phantom: {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
