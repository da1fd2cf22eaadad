"""Show a study as models see it: `jobs/show_study.py study=FOLDER out=FILE.png [phases=8]`.

The display windows are those of a dataset, chosen with the words of a sweep: `dataset=real`,
`+dataset.windows.lge=[1,99.5]`.
"""

import sys

from cardiolens.base.errors import InputError
from cardiolens.commands.command import begin_job, print_error
from cardiolens.config.base import GivenPath, Positive, Spec
from cardiolens.config.command_words import split_words
from cardiolens.config.compose import read_spec
from cardiolens.study.anatomy import anatomy_of
from cardiolens.study.overlay import study_sheet


class Words(Spec):
    """Words of the script, beside those of a dataset."""

    study: GivenPath  # the folder of the study
    out: GivenPath  # the picture
    phases: Positive = 8  # per slice


def main(argv: list[str]) -> int:
    """Write the contact sheet of a study folder; return 2 if a word or the study cannot be used, else 0."""
    begin_job(argv, __doc__)
    try:
        words, dataset_words = split_words(Words, argv, ("dataset",))
        dataset = read_spec(dataset_words).dataset
        anatomy = anatomy_of(dataset.protocol)
        windows = anatomy.windows(dataset.display)
    except InputError as error:
        return print_error(error)
    try:
        sheet = study_sheet(words.study, words.phases, windows, anatomy=anatomy)
        sheet.save(words.out)
    except (InputError, OSError, ValueError) as error:
        return print_error(InputError(f"{words.study}: {error}"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
