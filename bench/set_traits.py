"""Traits of public sets as others keep them: what a loader, a converter or a tool makes of the files.

Each changes the files of one set in place. `seen`: the loaders, issues and pages that have it; numbers are
those of public repositories.
"""

import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import nibabel as nib
import numpy as np
from numpy.typing import NDArray

Change = Callable[[Path], None]
Voxels = NDArray[np.generic]


@dataclass(frozen=True)
class Trait:
    """What somebody does to one set."""

    form: str  # of the phantom
    seen: str
    change: Change


def _files(folder: Path, pattern: str = "*") -> list[Path]:
    return sorted(path for path in folder.rglob(pattern) if path.is_file())


def _is_mask(path: Path) -> bool:
    return bool(re.search(r"_gt|_gd|manual|Contours", str(path)))


def _each(alter: Callable[[nib.Nifti1Image], nib.Nifti1Image], *, masks: bool = True) -> Change:
    """Write every image anew, and every mask unless they are left as they are."""

    def change(folder: Path) -> None:
        for path in _files(folder, "*.nii.gz"):
            if masks or not _is_mask(path):
                nib.save(alter(nib.load(path)), path)

    return change


def _named(rename: Callable[[Path], str | None]) -> Change:
    """Move every file; None leaves it out."""

    def change(folder: Path) -> None:
        old = folder.with_name("before")
        shutil.move(folder, old)
        folder.mkdir()
        for path in _files(old):
            name = rename(path.relative_to(old))
            if name is not None:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, folder / name)

    return change


def _text(pattern: str, alter: Callable[[str], str]) -> Change:
    def change(folder: Path) -> None:
        for path in _files(folder, pattern):
            path.write_text(alter(path.read_text(encoding="utf-8", errors="replace")), encoding="utf-8")

    return change


def _of_type(kind: str) -> Callable[[nib.Nifti1Image], nib.Nifti1Image]:
    def alter(image: nib.Nifti1Image) -> nib.Nifti1Image:
        voxels = np.asarray(image.dataobj)
        made = nib.Nifti1Image(voxels.astype(kind), image.affine, image.header)
        made.set_data_dtype(kind)
        return made

    return alter


def _scaled(image: nib.Nifti1Image) -> nib.Nifti1Image:
    """Keep half of the stored values, and let slope and intercept undo it."""
    header = image.header.copy()
    made = nib.Nifti1Image(np.asarray(image.dataobj), image.affine, header)
    made.header.set_slope_inter(0.5, 3.0)
    return made


def _coded(sform: int, qform: int) -> Callable[[nib.Nifti1Image], nib.Nifti1Image]:
    def alter(image: nib.Nifti1Image) -> nib.Nifti1Image:
        image.header["sform_code"], image.header["qform_code"] = sform, qform
        made = nib.Nifti1Image(np.asarray(image.dataobj), None, image.header)
        made.header["sform_code"], made.header["qform_code"] = sform, qform
        return made

    return alter


def _spread(image: nib.Nifti1Image) -> nib.Nifti1Image:
    voxels = np.asarray(image.dataobj)
    return nib.Nifti1Image(
        voxels.reshape(*voxels.shape, *(1,) * (5 - voxels.ndim)), image.affine, image.header
    )


def _squeezed(image: nib.Nifti1Image) -> nib.Nifti1Image:
    return nib.Nifti1Image(np.asarray(image.dataobj).squeeze(), image.affine, image.header)


def _as_numpy(image: nib.Nifti1Image) -> nib.Nifti1Image:
    """Keep the order of axes that a reader of another library returns, and no position."""
    return nib.Nifti1Image(np.asarray(image.dataobj).transpose(), np.eye(4))


def _no_lengths(image: nib.Nifti1Image) -> nib.Nifti1Image:
    return nib.Nifti1Image(np.asarray(image.dataobj), np.eye(4))


def _sliced_last(image: nib.Nifti1Image) -> nib.Nifti1Image:
    """Put phases before slices, with the header as it was."""
    voxels = np.asarray(image.dataobj)
    return nib.Nifti1Image(voxels.swapaxes(2, 3) if voxels.ndim == 4 else voxels, image.affine, image.header)


def _normalised(image: nib.Nifti1Image) -> nib.Nifti1Image:
    voxels = np.asarray(image.dataobj, np.float64)
    shares = (voxels - voxels.min()) / max(np.ptp(voxels), 1)
    made = nib.Nifti1Image(shares.astype("<f4"), image.affine, image.header)
    made.set_data_dtype("<f4")
    return made


def _masks_alone(alter: Callable[[Voxels], Voxels]) -> Change:
    def change(folder: Path) -> None:
        for path in _files(folder, "*.nii.gz"):
            if _is_mask(path):
                image = nib.load(path)
                values = alter(np.asarray(image.dataobj))
                made = nib.Nifti1Image(values, image.affine, image.header)
                made.set_data_dtype(values.dtype)
                nib.save(made, path)

    return change


def _swapped(values: Voxels) -> Voxels:
    """Give blood of left and right ventricle each other's value, as converters to one convention do."""
    table = np.array([0, 3, 2, 1], np.uint8)
    return table[values]


def _interpolated(values: Voxels) -> Voxels:
    shares = values.astype(np.float32)
    return np.asarray(0.75 * shares + 0.25 * np.roll(shares, 1, axis=0), np.float32)


def _one_value(values: Voxels) -> Voxels:
    return (values > 0).astype(np.uint8)


def _fewer_slices(values: Voxels) -> Voxels:
    return values[:, :, 1:]


def _turned(values: Voxels) -> Voxels:
    return np.ascontiguousarray(values[::-1, ::-1])


def _resource_forks(folder: Path) -> None:
    for path in _files(folder, "*.nii.gz"):
        path.with_name(f"._{path.name}").write_bytes(b"\0\x05\x16\x07\0\x02\0\0Mac OS X        " + b"\0" * 60)


def _gzip_inside(folder: Path) -> None:
    for path in _files(folder, "*.nii.gz"):
        path.rename(path.with_suffix(""))


def _unpacked(folder: Path) -> None:
    for path in _files(folder, "*.nii.gz"):
        nib.save(nib.load(path), path.with_suffix(""))
        path.unlink()


def _moments_of_mnms(folder: Path) -> None:
    """Take the frames of ED and ES out of image and mask, as somebody has who corrects their bias."""
    for path in _files(folder, "*_sa.nii.gz"):
        image, mask = nib.load(path), nib.load(path.with_name(path.name.replace("_sa.", "_sa_gt.")))
        marked = np.flatnonzero(np.asarray(mask.dataobj).any(axis=(0, 1, 2)))
        for moment, phase in zip(("ed", "es"), marked, strict=False):
            for ending, source in (("", image), ("_gt", mask)):
                frame = nib.Nifti1Image(np.asarray(source.dataobj)[..., phase], source.affine)
                nib.save(frame, path.with_name(path.name.replace("_sa.", f"_{moment}{ending}.")))
    for path in _files(folder, "*_sa*.nii.gz"):
        path.unlink()


def _encrypted_masks(folder: Path) -> None:
    for path in _files(folder, "*_gd.nii.gz"):
        path.with_name(path.name.replace("_gd", "_gdencrypt")).write_bytes(bytes(range(256)) * 40)
        path.unlink()


def _phase_dropped(folder: Path) -> None:
    """Leave out one phase of the cine, with Info.cfg as it was."""
    for path in _files(folder, "*_4d.nii.gz"):
        image = nib.load(path)
        nib.save(
            nib.Nifti1Image(np.delete(np.asarray(image.dataobj), 3, axis=3), image.affine, image.header), path
        )


def _phases_as_files(folder: Path, without: int | None = None) -> None:
    """Store each phase of the cine of ACDC as a file, and the cine no longer."""
    for path in _files(folder, "*_4d.nii.gz"):
        image = nib.load(path)
        for phase in range(image.shape[3]):
            if phase != without:
                frame = nib.Nifti1Image(np.asarray(image.dataobj)[..., phase], image.affine, image.header)
                nib.save(frame, path.with_name(path.name.replace("_4d", f"_frame{phase + 1:02d}")))
        path.unlink()


def _nnunet(path: Path) -> str | None:
    if ".nii" not in path.name or "_4d" in path.name:
        return None
    if _is_mask(path):
        return f"labelsTr/{path.name.replace('_gt', '').replace('_gd', '')}"
    return f"imagesTr/{path.name.replace('.nii', '_0000.nii')}"


def _nnunet_channels(path: Path) -> str | None:
    channels = {"_C0": "_0000", "_DE": "_0001"}
    name = path.name.replace("_gd", "")
    for ending, channel in channels.items():
        name = name.replace(ending, channel)
    return f"{'labelsTr' if '_gd' in path.name else 'imagesTr'}/{name}"


def _by_kind(images: str, masks: str) -> Callable[[Path], str]:
    def rename(path: Path) -> str:
        if ".nii" not in path.name:
            return path.name
        return f"{masks if _is_mask(path) else images}/{path.name}"

    return rename


def _mscmr_folders(path: Path) -> str:
    if "manual" in path.name:
        return f"{path.name.split('_')[1].lower()}gt/{path.name}"
    return f"c0t2lge/{path.name}"


TRAITS: Mapping[str, Trait] = {
    "acdc uncompressed": Trait("acdc", "README with `patient001_frame01.nii` (uncompressed)", _unpacked),
    "acdc gzip under the name nii": Trait("acdc", "copies on sharing sites", _gzip_inside),
    "acdc voxels of 64 bits": Trait("acdc", "get_fdata and save, in most loaders", _each(_of_type("<f8"))),
    "acdc unsigned bytes for masks, 32-bit images": Trait(
        "acdc", "MIC-DKFZ/nnUNet #2741", _each(_of_type("<f4"), masks=False)
    ),
    "mnms slope and intercept": Trait("mnms", "NIfTI standard, scl_slope", _each(_scaled, masks=False)),
    "acdc without sform": Trait("acdc", "InsightSoftwareConsortium/ITK #1484", _each(_coded(0, 1))),
    "mnms without qform": Trait("mnms", "fmriprep #2281", _each(_coded(1, 0))),
    "mnms in canonical order": Trait(
        "mnms", "nib.as_closest_canonical in loaders", _each(nib.as_closest_canonical)
    ),
    "acdc in canonical order": Trait(
        "acdc", "nib.as_closest_canonical in loaders", _each(nib.as_closest_canonical)
    ),
    "emidec in canonical order": Trait(
        "emidec", "nib.as_closest_canonical in loaders", _each(nib.as_closest_canonical)
    ),
    "mnms of five axes": Trait("mnms", "spinalcordtoolbox #4744", _each(_spread)),
    "mnms2 long axis squeezed": Trait("mnms2", "squeeze before saving", _each(_squeezed)),
    "mnms in the order of arrays": Trait("mnms", "GetArrayFromImage and nibabel", _each(_as_numpy)),
    "acdc in the order of arrays": Trait("acdc", "GetArrayFromImage and nibabel", _each(_as_numpy)),
    "mnms phases before slices": Trait("mnms", "Slicer #2972", _each(_sliced_last)),
    "mnms without lengths": Trait("mnms", "LLD-MMRI2023 #2", _each(_no_lengths)),
    "emidec without lengths": Trait("emidec", "LLD-MMRI2023 #2", _each(_no_lengths)),
    "cinemyops normalised": Trait(
        "cinemyops", "converters of CARE participants", _each(_normalised, masks=False)
    ),
    "acdc frames alone": Trait(
        "acdc", "README without the cine", _named(lambda path: None if "_4d" in path.name else str(path))
    ),
    "acdc cine alone": Trait(
        "acdc", "loaders of the 4D files", _named(lambda path: None if "frame" in path.name else str(path))
    ),
    "acdc without Info.cfg": Trait(
        "acdc", "copies on sharing sites", _named(lambda path: None if path.suffix == ".cfg" else str(path))
    ),
    "acdc Info.cfg as an ini file": Trait(
        "acdc",
        "loaders with configparser, which writes `ed = 1` below a section",
        _text("Info.cfg", lambda text: "[dummy_section]\n" + text.lower().replace(": ", " = ")),
    ),
    "acdc without end-systole": Trait(
        "acdc", "a truncated Info.cfg", _text("Info.cfg", lambda text: re.sub(r"ES: \d+\n", "", text))
    ),
    "acdc every phase a file": Trait("acdc", "fslsplit", _phases_as_files),
    "acdc a phase of the files lost": Trait("acdc", "fslsplit", lambda folder: _phases_as_files(folder, 4)),
    "acdc a phase of the cine lost": Trait("acdc", "Weasis #457", _phase_dropped),
    "acdc labels of mnms": Trait("acdc", "converters that merge ACDC and M&Ms", _masks_alone(_swapped)),
    "mnms labels of acdc": Trait("mnms", "converters that merge ACDC and M&Ms", _masks_alone(_swapped)),
    "mnms labels interpolated": Trait(
        "mnms", "resampling without nearest neighbours", _masks_alone(_interpolated)
    ),
    "mnms2 labels of one value": Trait("mnms2", "binary masks of one structure", _masks_alone(_one_value)),
    "emidec masks of another shape": Trait(
        "emidec",
        "a generator of masks: shapes of Images and Contours differ in some cases",
        _masks_alone(_fewer_slices),
    ),
    "mscmr masks turned": Trait("mscmr", "rcuocolo/PROSTATEx_masks #9, #11", _masks_alone(_turned)),
    "mnms another name of the table": Trait(
        "mnms",
        "211230_MnMs_Dataset_information_diagnosis_opendataset.csv",
        _named(lambda path: str(path).replace("M&Ms", "MnMs")),
    ),
    "mnms table with blanks": Trait(
        "mnms",
        "201207_M&Ms Dataset information - diagnosis - opendataset.csv",
        _named(
            lambda path: str(path).replace(
                "M&Ms_Dataset_information_diagnosis_", "M&Ms Dataset information - diagnosis - "
            )
        ),
    ),
    "mnms images and labels": Trait(
        "mnms", "PromptReg: Cardiac/images, Cardiac/labels", _named(_by_kind("images", "labels"))
    ),
    "mnms frames of two moments": Trait(
        "mnms", "a script that writes _ed, _ed_gt, _es, _es_gt", _moments_of_mnms
    ),
    "mnms2 img and gt without cine": Trait(
        "mnms2",
        "reorganize_mms2.py",
        _named(lambda path: None if "CINE" in path.name else _by_kind("test/img", "test/gt")(path)),
    ),
    "mnms resource forks beside": Trait("mnms", "loaders that skip ._ names", _resource_forks),
    "mscmr folders of the challenge": Trait(
        "mscmr", "C0LET2_nii45_for_challenge19/c0t2lge, lgegt", _named(_mscmr_folders)
    ),
    "mscmr numbers apart": Trait(
        "mscmr",
        "a loader of patient_1_C0.nii.gz",
        _named(lambda path: str(path).replace("patient", "patient_")),
    ),
    "emidec Image and Mask": Trait(
        "emidec", "LeFusion: Image/Case_X, Mask/Case_X", _named(_by_kind("Image", "Mask"))
    ),
    "emidec in capitals": Trait(
        "emidec", "archives of other systems", _named(lambda path: str(path).upper())
    ),
    "myops encrypted masks": Trait("myops", "MyoPS2020_EvaluateByYourself", _encrypted_masks),
    "acdc for nnU-Net": Trait("acdc", "nnunetv2 Dataset027_ACDC.py", _named(_nnunet)),
    "mnms2 for nnU-Net": Trait("mnms2", "conversions for nnU-Net", _named(_nnunet)),
    "myops channels of nnU-Net": Trait("myops", "conversions for nnU-Net", _named(_nnunet_channels)),
}
