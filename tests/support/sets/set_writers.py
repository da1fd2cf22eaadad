"""One writer a set: names, folders, information files and header traits (sources: conf/layout/*.yaml)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import nibabel as nib
import numpy as np
from numpy.typing import NDArray

from cardiolens.base import disk
from cardiolens.phantom.phantom_cohort import gzipped
from tests.support.sets.set_volume import SetVolume

ACDC = {"rv_blood": 1, "myocardium": 2, "lv_blood": 3}
MNMS = {"lv_blood": 1, "myocardium": 2, "rv_blood": 3}
EMIDEC = {"lv_blood": 1, "myocardium": 2, "scar": 3, "obstruction": 4}
MYOPS = {"lv_blood": 500, "rv_blood": 600, "myocardium": 200, "oedema": 1220, "scar": 2221}
_MIDDLE = (3, 4, 5, 6, 7)  # slices of a short stack
_GROUPS = {("normal", None): "NOR", ("icm", None): "MINF", ("nicm", "hcm"): "HCM", ("nicm", "dcm"): "DCM"}


@dataclass(frozen=True)
class Subject:
    """One heart of a set: its number from 1, its volumes, and what the set tells of it."""

    number: int
    volumes: Mapping[str, SetVolume]
    etiology: str
    subtype: str | None
    bsa: float

    @property
    def apex_first(self) -> bool:
        """Whether its slices are stored from the apex; sets hold both."""
        return self.number % 2 == 0

    @property
    def is_straight(self) -> bool:
        """Whether its files tell no position, in sets whose headers nobody describes."""
        return self.number % 3 == 0

    @property
    def group(self) -> str:
        """The group of ACDC."""
        return _GROUPS.get((self.etiology, self.subtype), "RV")

    @property
    def height_cm(self) -> float:
        return 172.0

    @property
    def weight_kg(self) -> float:
        """The weight that gives the body surface, by Mosteller."""
        return round(self.bsa * self.bsa * 3600 / self.height_cm, 1)

    def volume(self, name: str) -> SetVolume:
        """A short axis in the order of this subject, or another view as it is."""
        volume = self.volumes[name]
        return volume.reversed() if self.apex_first and name.endswith("sax") else volume


@dataclass(frozen=True)
class SetFormat:
    """How a set is written, and what it needs of a heart."""

    views: Sequence[str]
    write: Callable[[Path, Sequence[Subject]], None]
    name: Callable[[Subject], str]
    slices: Sequence[int] = ()  # those that the set has; empty: all
    static: bool = False  # whether its cine is one phase, end-diastole

    def of(self, subject: Subject) -> Subject:
        """Return a heart with the views, slices and phases that the set has."""
        volumes = {view: subject.volumes[view] for view in self.views}
        if self.static:
            volumes = {view: volume.at_end_diastole() for view, volume in volumes.items()}
        if self.slices:
            volumes = {view: volume.slices(self.slices) for view, volume in volumes.items()}
        return replace(subject, volumes=volumes)


Array = NDArray[np.generic]


def positioned(voxels: Array, affine: NDArray[np.float64], step: float | None = None) -> bytes:
    """A file with its position; `step` stands in the fourth voxel length, in no declared unit."""
    image = nib.Nifti1Image(np.ascontiguousarray(voxels), np.round(affine, 6))
    image.header.set_xyzt_units("mm", "sec")
    image.set_qform(np.round(affine, 6), code=1)
    image.set_sform(np.round(affine, 6), code=1)
    if step is not None:
        image.header["pixdim"][4] = step
    return gzipped(image.to_bytes())


def unit_sform(voxels: Array, spacing: tuple[float, float, float], *, qform: bool) -> bytes:
    """A file with unit columns in the sform and true lengths in `pixdim`, as ACDC and EMIDEC have it."""
    image = nib.Nifti1Image(np.ascontiguousarray(voxels), np.diag([-1.0, -1.0, 1.0, 1.0]))
    image.header.set_xyzt_units("mm", "sec")
    if qform:
        image.set_qform(np.diag([-spacing[0], -spacing[1], spacing[2], 1.0]), code=1)
    image.set_sform(np.diag([-1.0, -1.0, 1.0, 1.0]), code=1)
    image.header["pixdim"][1:4] = spacing
    return gzipped(image.to_bytes())


def straight(voxels: Array, spacing: tuple[float, float, float]) -> bytes:
    """A file whose affine tells the lengths and no position."""
    return positioned(voxels, np.diag([-spacing[0], -spacing[1], spacing[2], 1.0]))


def _acdc(folder: Path, subjects: Sequence[Subject]) -> None:
    for subject in subjects:
        name = f"patient{subject.number:03d}"
        home = folder / "database" / "training" / name
        cine = subject.volume("cine_sax")
        marks = cine.labels(ACDC, "myocardium").astype(np.uint8)
        _write(home / f"{name}_4d.nii.gz", unit_sform(cine.voxels, cine.spacing_mm, qform=True))
        for phase in (0, cine.es):
            frame, mask = cine.voxels[..., phase], marks[..., phase]
            number = f"{name}_frame{phase + 1:02d}"
            _write(home / f"{number}.nii.gz", unit_sform(frame, cine.spacing_mm, qform=True))
            _write(home / f"{number}_gt.nii.gz", unit_sform(mask, cine.spacing_mm, qform=True))
        phases = cine.voxels.shape[3]
        info = (
            f"ED: 1\nES: {cine.es + 1}\nGroup: {subject.group}\nHeight: {subject.height_cm}\n"
            f"NbFrame: {phases}\nWeight: {subject.weight_kg}\n"
        )
        _write(home / "Info.cfg", info.encode())
        _write(home / "MANDATORY_CITATION.md", b"# Please cite\n")


def _emidec(folder: Path, subjects: Sequence[Subject]) -> None:
    root = folder / "emidec-dataset-1.0.1"
    for subject in subjects:
        name = _emidec_name(subject)
        lge = subject.volume("lge_sax")
        marks = lge.labels(EMIDEC, "scar")[..., 0].astype(np.uint8)
        image = unit_sform(lge.voxels[..., 0].astype(np.float32), lge.spacing_mm, qform=False)
        _write(root / f"Case_{name}" / "Images" / f"Case_{name}.nii.gz", image)
        mask = unit_sform(marks, lge.spacing_mm, qform=False)
        _write(root / f"Case_{name}" / "Contours" / f"Case_{name}.nii.gz", mask)
        text = (
            f"Case {name}\n\nGap between slices\u2020: {lge.spacing_mm[2]:g} mm\nSex\u2020: F\n"
            "Age : 70\nTobacco : 3\nOverweight : N\nECG (ST +) : Y\nTroponin : 1.1\nKillip Max: 1\n"
            "FEVG : 60\nNTProBNP : 248\n"
        )
        _write(root / f"Case {name}.txt", text.encode("cp1252"))
    _write(root / "Readme.txt", b"EMIDEC\n")


def _emidec_name(subject: Subject) -> str:
    return f"{'N' if subject.etiology == 'normal' else 'P'}{subject.number:03d}"


def _mnms(folder: Path, subjects: Sequence[Subject]) -> None:
    root = folder / "OpenDataset"
    lines = [",External code,VendorName,Vendor,Centre,ED,ES,Age,Pathology,Sex,Height,Weight"]
    makers = ("Siemens", "Philips", "GE", "Canon")
    for subject in subjects:
        name, cine = _mnms_name(subject), subject.volume("cine_sax")
        labelled = subject.number % 5 != 4
        home = root / "Training" / ("Labeled" if labelled else "Unlabeled") / name
        marks = np.zeros_like(cine.codes)
        if labelled:
            for phase in (0, cine.es):
                marks[..., phase] = cine.labels(MNMS, "myocardium")[..., phase]
        _write(home / f"{name}_sa.nii.gz", positioned(cine.voxels, cine.affine, step=34.0))
        _write(home / f"{name}_sa_gt.nii.gz", positioned(marks.astype(np.uint8), cine.affine, step=1.0))
        group = {"MINF": "IHD", "RV": "Other"}.get(subject.group, subject.group)
        place = subject.number % 4
        lines.append(
            f"{subject.number},{name},{makers[place]},{'ABCD'[place]},{place + 1},0,{cine.es},54,{group},M,"
            f"{subject.height_cm:g},{subject.weight_kg:g}"
        )
    table = "211230_M&Ms_Dataset_information_diagnosis_opendataset.csv"
    _write(root / table, ("\n".join(lines) + "\n").encode())


def _mnms_name(subject: Subject) -> str:
    return (
        f"A{subject.number:01d}S9V{subject.number % 10}" if subject.number < 10 else f"B{subject.number:05d}"
    )


def _mnms2(folder: Path, subjects: Sequence[Subject]) -> None:
    lines = ["SUBJECT_CODE,DISEASE,VENDOR,SCANNER,FIELD"]
    for subject in subjects:
        name = f"{subject.number:03d}"
        home = folder / "MnM2" / "dataset" / name
        for short, view in (("SA", "cine_sax"), ("LA", "cine_4ch")):
            cine = subject.volume(view)
            marks = cine.labels(MNMS, "myocardium").astype(np.uint8)
            _write(home / f"{name}_{short}_CINE.nii.gz", positioned(cine.voxels, cine.affine, step=1.0))
            for moment, phase in (("ED", 0), ("ES", cine.es)):
                frame = f"{name}_{short}_{moment}"
                _write(home / f"{frame}.nii.gz", positioned(cine.voxels[..., phase], cine.affine))
                _write(home / f"{frame}_gt.nii.gz", positioned(marks[..., phase], cine.affine))
        group = {"MINF": "LV", "DCM": "LV"}.get(subject.group, subject.group)
        lines.append(f"{subject.number},{group},Philips Medical Systems,Achieva,1.5")
    _write(folder / "MnM2" / "dataset_information.csv", ("\n".join(lines) + "\n").encode())


def _myops(folder: Path, subjects: Sequence[Subject]) -> None:
    """C0 and DE on one grid of few slices with one mask; T2 has another grid and is left out."""
    for subject in subjects:
        name = f"myops_training_{100 + subject.number}"
        views = {"C0": "cine_sax", "DE": "lge_sax"}
        volumes = {short: subject.volume(view) for short, view in views.items()}
        lge = volumes["DE"]
        for short, volume in volumes.items():
            image = _of_zhuang(subject, volume.voxels[..., 0], volume)
            _write(folder / "train25" / f"{name}_{short}.nii.gz", image)
        mask = _of_zhuang(subject, lge.labels(MYOPS, "scar")[..., 0], lge)
        _write(folder / "train25_myops_gd" / f"{name}_gd.nii.gz", mask)


def _of_zhuang(subject: Subject, voxels: NDArray[np.int16], volume: SetVolume) -> bytes:
    """A file with a position; every third subject has lengths alone, as nobody describes these headers."""
    if subject.is_straight:
        return straight(voxels, volume.spacing_mm)
    return positioned(voxels, volume.affine)


def _cinemyops(folder: Path, subjects: Sequence[Subject]) -> None:
    for subject in subjects:
        name = _cinemyops_name(subject)
        home = folder / "CineMyoPS_train" / ("center_alpha" if subject.number % 2 else "center_beta")
        cine, lge, t2 = (subject.volume(view) for view in ("cine_sax", "lge_sax", "t2_sax"))
        _write(home / f"{name}_Cine.nii.gz", positioned(cine.voxels, cine.affine, step=0.04))
        _write(home / f"{name}_LGE.nii.gz", positioned(lge.voxels[..., 0], lge.affine))
        _write(home / f"{name}_T2.nii.gz", positioned(t2.voxels[..., 0], t2.affine))
        marks = cine.labels(MYOPS, "scar")[..., 0]
        _write(home / f"{name}_gd.nii.gz", positioned(marks, cine.affine))


def _cinemyops_name(subject: Subject) -> str:
    return f"Case{1000 + subject.number}"


def _mscmr(folder: Path, subjects: Sequence[Subject]) -> None:
    for subject in subjects:
        name = f"patient{subject.number}"
        for short, view in (("C0", "cine_sax"), ("LGE", "lge_sax"), ("T2", "t2_sax")):
            volume = subject.volume(view)
            marks = volume.labels(MYOPS | {"scar": 200, "oedema": 200}, "myocardium")[..., 0]
            home = folder / "C0LET2_nii45_for_challenge19"
            image = _of_zhuang(subject, volume.voxels[..., 0], volume)
            _write(home / f"{short.lower()}_images" / f"{name}_{short}.nii.gz", image)
            mask = _of_zhuang(subject, marks, volume)
            _write(home / f"{short.lower()}gt" / f"{name}_{short}_manual.nii.gz", mask)


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    disk.write_draft(path, content)


SETS: Mapping[str, SetFormat] = {
    "acdc": SetFormat(("cine_sax",), _acdc, lambda subject: f"patient{subject.number:03d}"),
    "emidec": SetFormat(("lge_sax",), _emidec, _emidec_name),
    "mnms": SetFormat(("cine_sax",), _mnms, _mnms_name),
    "mnms2": SetFormat(("cine_sax", "cine_4ch"), _mnms2, lambda subject: f"{subject.number:03d}"),
    "myops": SetFormat(
        ("cine_sax", "lge_sax"),
        _myops,
        lambda subject: str(100 + subject.number),
        slices=_MIDDLE,
        static=True,
    ),
    "cinemyops": SetFormat(("cine_sax", "lge_sax", "t2_sax"), _cinemyops, _cinemyops_name),
    "mscmr": SetFormat(
        ("cine_sax", "lge_sax", "t2_sax"),
        _mscmr,
        lambda subject: f"patient{subject.number}",
        static=True,
    ),
}
