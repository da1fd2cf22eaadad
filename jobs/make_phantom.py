"""Make a phantom cohort: `python jobs/make_phantom.py dataset=phantom_ci out=some/folder [masks=true]`.

`format=text` writes free-text reports and their truth, without images.

As a public set is downloaded: `... format=acdc|emidec|mnms|mnms2|myops|cinemyops|mscmr`.

As DICOM: `... format=dicom vendor=siemens|ge|philips|enhanced [habit=mosaic] [wrong_names=0.33] [repeats=0.2]
[transfer_syntax=explicit|implicit|rle|jpeg2000]`.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Literal

from cardiolens.base.errors import InputError
from cardiolens.commands.command import Action, verb
from cardiolens.config.base import GivenPath, Spec
from cardiolens.config.command_words import split_words
from cardiolens.config.compose import read_spec
from cardiolens.config.dataset import PhantomSpec
from cardiolens.phantom.phantom_cohort import make_cohort, planned
from cardiolens.runtime.connect import ray_cluster
from tests.support.dicom.dicom_export import make_export
from tests.support.dicom.exam import ExportSpec
from tests.support.free_text.report_writer import make_reports
from tests.support.sets.set_export import make_set
from tests.support.sets.set_writers import SETS

_WORTH_A_CLUSTER = 24  # studies; Ray takes longer to start than fewer studies take to make


class Words(Spec):
    """Words of the script for NIfTI and for text, beside those of a dataset."""

    out: GivenPath | None = None
    format: Literal[
        "nifti", "dicom", "text", "acdc", "emidec", "mnms", "mnms2", "myops", "cinemyops", "mscmr"
    ] = "nifti"
    masks: bool | None = None


class DicomWords(ExportSpec, Words):
    """Words of the script for DICOM."""

    def export(self) -> ExportSpec:
        """Return the options of the export."""
        return ExportSpec(**{name: getattr(self, name) for name in ExportSpec.model_fields})


def make(argv: Sequence[str]) -> int:
    """Make the cohort of a dataset's phantom."""
    words, sweep_words = read(argv)
    export = words.export() if isinstance(words, DicomWords) else None
    masks = [] if words.masks is None else [f"dataset.phantom.also=[{'masks' * words.masks}]"]
    spec = read_spec([*sweep_words, *masks])
    if spec.dataset.phantom is None:
        raise InputError(f"dataset {spec.dataset.name!r} has no phantom; choose one of the phantom_* ones")
    folder = words.out or _place(spec.dataset.studies.parent, export, words.format)
    if export is not None:
        _export(spec.dataset.phantom, export, folder)
    elif words.format in SETS:
        make_set(spec.dataset.phantom, words.format, folder)
    elif words.format == "text":
        make_reports(spec.dataset.phantom, folder, spec.dataset.protocol)
    else:
        many = len(planned(spec.dataset.phantom, folder)) >= _WORTH_A_CLUSTER
        with ray_cluster(spec.cluster) if many else nullcontext():
            make_cohort(spec.dataset.phantom, folder, spec.dataset.protocol)
    print(f"phantom: {folder}")
    return 0


def read(argv: Sequence[str]) -> tuple[Words, list[str]]:
    """Read the words of the script, which depend on the format, and return them with those of a sweep."""
    if "format=dicom" not in argv:
        only_dicom = ExportSpec.model_fields.keys() & {word.partition("=")[0] for word in argv}
        if only_dicom:
            raise InputError(f"{min(only_dicom)}=: only for DICOM; add format=dicom, or leave it out")
    kind = DicomWords if "format=dicom" in argv else Words
    words, sweep_words = split_words(kind, argv)
    if words.masks is not None and words.format in SETS:
        raise InputError(f"masks=: format={words.format} has the masks of that set; leave it out")
    if words.masks is not None and words.format == "text":
        raise InputError("masks=: only of images; leave it out with format=text")
    return words, sweep_words


def _place(cohort: Path, export: ExportSpec | None, form: str) -> Path:
    """Return the default folder: the NIfTI cohort's, or one beside it named after vendor or format."""
    if form == "text" or form in SETS:
        return cohort.with_name(f"{cohort.name}_{form}")
    return cohort if export is None else cohort.with_name(f"{cohort.name}_{export.vendor}")


def _export(spec: PhantomSpec, export: ExportSpec, folder: Path) -> None:
    if "masks" in spec.also:
        raise InputError("masks=true: scanners write no masks; leave it out with format=dicom")
    make_export(spec, export, folder)


main = verb(__name__, __doc__, Action(None, make))
