"""Options of a DICOM export: the vendor to imitate, and the amount of disorder."""

from typing import Annotated, Literal

from pydantic import Field

from cardiolens.config.base import Spec

Vendor = Literal["siemens", "ge", "philips", "enhanced"]
TransferSyntax = Literal["explicit", "implicit", "rle", "jpeg2000"]
Share = Annotated[float, Field(ge=0, le=1)]


class ExportSpec(Spec):
    """The options of a phantom cohort as DICOM."""

    vendor: Vendor
    transfer_syntax: TransferSyntax = "explicit"
    wrong_names: Share = 0.0  # share of acquisitions with wrong names
    repeats: Share = 0.0  # share of acquisitions with a failed first try
    habit: str = ""  # what somebody else does to the exam, by its name in data/habits.yaml
