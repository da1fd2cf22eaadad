"""The options of an export: whose scanner it imitates, and how untidy it is."""

from typing import Annotated, Literal

from pydantic import Field

from cardiolens.config.base import Spec

Vendor = Literal["siemens", "ge", "philips", "enhanced"]
TransferSyntax = Literal["explicit", "implicit", "rle", "jpeg2000"]
Share = Annotated[float, Field(ge=0, le=1)]


class ExportSpec(Spec):
    """A phantom cohort as DICOM."""

    vendor: Vendor
    transfer_syntax: TransferSyntax = "explicit"
    wrong_names: Share = 0.0  # of the names of acquisitions
    repeats: Share = 0.0  # of the acquisitions done twice
