"""Show a study as models see it: `jobs/show_study.py study=FOLDER out=FILE.png [phases=8]`.

The display windows are those of a dataset, chosen with the words of a sweep: `dataset=real`,
`+dataset.windows.lge=[1,99.5]`.
"""

from collections.abc import Sequence

from cardiolens.base.errors import InputError
from cardiolens.commands.command import Action, verb
from cardiolens.config.base import GivenPath, Positive, Spec
from cardiolens.config.compose import read_spec
from cardiolens.study.anatomy import anatomy_of
from cardiolens.study.overlay import study_sheet


class Words(Spec):
    """Words of the script, beside those of a dataset."""

    study: GivenPath  # the folder of the study
    out: GivenPath  # the picture
    phases: Positive = 8  # per slice


def show(words: Words, dataset_words: Sequence[str]) -> int:
    """Write the contact sheet of a study folder."""
    dataset = read_spec(dataset_words).dataset
    anatomy = anatomy_of(dataset.protocol)
    windows = anatomy.windows(dataset.display)
    try:
        sheet = study_sheet(words.study, words.phases, windows, anatomy=anatomy)
        sheet.save(words.out)
    except (InputError, OSError, ValueError) as error:
        raise InputError(f"{words.study}: {error}") from error
    return 0


main = verb(__name__, __doc__, Action(Words, show, about=("dataset",)))
