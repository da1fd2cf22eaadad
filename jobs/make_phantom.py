"""Make a phantom cohort: `python jobs/make_phantom.py dataset=phantom_ci out=some/folder [masks=true]
[reports=free]`. With `reports=free`, free-text reports and their truth stand beside the studies; with
`format=text` they are made alone, without images.

As DICOM: `... format=dicom vendor=siemens|ge|philips|enhanced [wrong_names=0.33] [repeats=0.2]
[transfer_syntax=explicit|implicit|rle|jpeg2000]`.
"""

import sys
from contextlib import nullcontext
from pathlib import Path

from cardiolens.base.errors import InputError, RunError
from cardiolens.config.compose import read_spec
from cardiolens.config.dataset import PhantomSpec
from cardiolens.phantom.dicom.dicom_export import make_export
from cardiolens.phantom.dicom.spec import ExportSpec, export_spec
from cardiolens.phantom.free_text.report_writer import make_reports
from cardiolens.phantom.phantom_cohort import make_cohort, planned
from cardiolens.runtime.connect import ray_cluster
from cardiolens.storage.permissions import be_private

_DICOM = tuple(ExportSpec.model_fields)
_OWN = ("out", "masks", "reports", "format", *_DICOM)
_WORTH_A_CLUSTER = 24  # studies; fewer are made before Ray would have started


def main(argv: list[str]) -> int:
    """Make the cohort of a dataset's phantom; return 2 if the input is wrong, 1 if making fails, else 0."""
    be_private()
    own = {name: value for name, _, value in (word.partition("=") for word in argv) if name in _OWN}
    masks = [f"dataset.phantom.masks={own['masks']}"] if "masks" in own else []
    try:
        asked = _asked(own)
        spec = read_spec([*(word for word in argv if word.partition("=")[0] not in _OWN), *masks])
        if spec.dataset.phantom is None:
            raise InputError(
                f"dataset {spec.dataset.name!r} has no phantom; choose one of the phantom_* ones"
            )
        folder = Path(own.get("out", _place(spec.dataset.studies.parent, asked, own.get("format"))))
        if asked is not None:
            _export(spec.dataset.phantom, asked, folder)
        elif own.get("format") == "text":
            make_reports(spec.dataset.phantom, folder, spec.dataset.protocol)
        else:
            many = len(planned(spec.dataset.phantom, folder)) >= _WORTH_A_CLUSTER
            with ray_cluster(spec.cluster) if many else nullcontext():
                make_cohort(
                    spec.dataset.phantom, folder, spec.dataset.protocol, free_reports="reports" in own
                )
    except (InputError, RunError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    print(f"phantom: {folder}")
    return 0


def _asked(own: dict[str, str]) -> ExportSpec | None:
    """The options of an export, or None for NIfTI and for text."""
    words = {name: own[name] for name in _DICOM if name in own}
    form = own.get("format", "nifti")
    if form not in ("nifti", "dicom", "text"):
        raise InputError(f"format={form}: is not known; choose nifti, dicom or text")
    if own.get("reports", "free") != "free":
        raise InputError(f"reports={own['reports']}: is not known; choose free, or leave it out")
    if "reports" in own and form == "dicom":
        raise InputError("reports=free: only beside NIfTI; make them with format=text, they fit both")
    if "masks" in own and form == "text":
        raise InputError("masks: only of images; leave it out with format=text")
    if form == "dicom":
        return export_spec(words)
    if words:
        raise InputError(f"{', '.join(words)}: only for DICOM; add format=dicom, or leave them out")
    return None


def _place(cohort: Path, asked: ExportSpec | None, form: str | None) -> Path:
    """The folder where none is given: the NIfTI cohort's, or one beside it named after vendor or form."""
    if form == "text":
        return cohort.with_name(f"{cohort.name}_text")
    return cohort if asked is None else cohort.with_name(f"{cohort.name}_{asked.vendor}")


def _export(spec: PhantomSpec, asked: ExportSpec, folder: Path) -> None:
    if spec.masks:
        raise InputError("masks=true: scanners write no masks; leave it out with format=dicom")
    make_export(spec, asked, folder)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
