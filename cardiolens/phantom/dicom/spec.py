"""The options of an export: whose scanner it imitates, and how untidy it is."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from cardiolens.base.errors import InputError
from cardiolens.config.base import Spec, describe

Vendor = Literal["siemens", "ge", "philips", "enhanced"]
TransferSyntax = Literal["explicit", "implicit", "rle", "jpeg2000"]
Share = Annotated[float, Field(ge=0, le=1)]


class ExportSpec(Spec):
    """A phantom cohort as DICOM."""

    vendor: Vendor
    transfer_syntax: TransferSyntax = "explicit"
    wrong_names: Share = 0.0  # of the names of acquisitions
    repeats: Share = 0.0  # of the acquisitions done twice


def export_spec(words: Mapping[str, str]) -> ExportSpec:
    """The options given as words; InputError names the one that is wrong."""
    try:
        return ExportSpec.model_validate(dict(words))
    except ValidationError as error:
        raise InputError(f"format=dicom: {describe(error)}") from None
