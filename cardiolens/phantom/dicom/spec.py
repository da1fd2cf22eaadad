"""Options of a DICOM export: the vendor to imitate, and the amount of disorder."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from cardiolens.base.errors import InputError
from cardiolens.config.base import Spec, describe

Vendor = Literal["siemens", "ge", "philips", "enhanced"]
TransferSyntax = Literal["explicit", "implicit", "rle", "jpeg2000"]
Share = Annotated[float, Field(ge=0, le=1)]


class ExportSpec(Spec):
    """The options of a phantom cohort as DICOM."""

    vendor: Vendor
    transfer_syntax: TransferSyntax = "explicit"
    wrong_names: Share = 0.0  # share of acquisitions with wrong names
    repeats: Share = 0.0  # share of acquisitions with a failed first try


def export_spec(words: Mapping[str, str]) -> ExportSpec:
    """Parse options from strings; InputError names the wrong option."""
    try:
        return ExportSpec.model_validate(dict(words))
    except ValidationError as error:
        raise InputError(f"format=dicom: {describe(error)}") from None
