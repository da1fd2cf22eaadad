"""Write datasets as DICOM files that contain no trace of the writing library."""

from pathlib import Path

from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.pixels.encoders.base import get_encoder
from pydicom.uid import UID, ExplicitVRLittleEndian, ImplicitVRLittleEndian, JPEG2000Lossless, RLELossless

from cardiolens.base.errors import InputError
from tests.support.dicom.patient_identity import uid
from tests.support.dicom.spec import TransferSyntax

_COMPRESSED = {"rle": RLELossless, "jpeg2000": JPEG2000Lossless}


def write_file(path: Path, dataset: Dataset, syntax: TransferSyntax, *, bare: bool = False) -> None:
    """Write a dataset; the bytes depend on its content, not on the library's version.

    `bare`: without preamble and meta information.
    """
    dataset.file_meta = FileMetaDataset()
    dataset.file_meta.MediaStorageSOPClassUID = dataset.SOPClassUID
    dataset.file_meta.MediaStorageSOPInstanceUID = dataset.SOPInstanceUID
    dataset.file_meta.ImplementationClassUID = UID(uid("cardiolens phantom"))
    dataset.file_meta.ImplementationVersionName = "PHANTOM_1"
    plain = ImplicitVRLittleEndian if syntax == "implicit" else ExplicitVRLittleEndian
    dataset.file_meta.TransferSyntaxUID = plain
    if syntax in _COMPRESSED:
        dataset.compress(_COMPRESSED[syntax], generate_instance_uid=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    if bare:
        del dataset.file_meta
        dataset.save_as(path, implicit_vr=syntax == "implicit", little_endian=True)
    else:
        dataset.save_as(path, enforce_file_format=True)


def check_encoder(syntax: TransferSyntax) -> None:
    """Raise InputError if the compressor of a transfer syntax is not installed."""
    if syntax in _COMPRESSED and not get_encoder(_COMPRESSED[syntax]).is_available:
        raise InputError(
            f"transfer_syntax={syntax}: its encoder is not installed; install the extra `dicom`, "
            "or choose one of explicit, implicit, rle"
        )
