"""Bombs for every verb that takes a path: peak memory of a process, seconds, exit code, and what was said.

Run: `python bench/hostile.py [WORD]` (only cases whose name holds the word). A case passes below 1 GiB and
60 s, with exit code 1 or 2 or a reject that names a reason, and without a traceback.
"""

import json
import os
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydicom.dataset import FileDataset, FileMetaDataset
from pydicom.uid import UID, ExplicitVRLittleEndian, generate_uid

MIB, GIB = 1 << 20, 1 << 30
MOST_MEMORY, MOST_SECONDS = GIB, 60.0
DEFLATED = UID("1.2.840.10008.1.2.1.99")
JPEG_2000 = UID("1.2.840.10008.1.2.4.90")
DEEP = "[" * 200_000
ALIASES = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12))


@dataclass(frozen=True)
class Case:
    """A bomb and the command that meets it; `reason` is what the output must say."""

    name: str
    make: Callable[[Path], None]
    words: tuple[str, ...]
    reason: str


def zeros(head: bytes, n_mib: int, wbits: int = 31) -> bytes:
    """Bytes and so many MiB of zeros behind them, deflated."""
    packer = zlib.compressobj(9, wbits=wbits)
    one = bytes(MIB)
    return b"".join([packer.compress(head), *(packer.compress(one) for _ in range(n_mib)), packer.flush()])


def sparse(path: Path, size: int, head: bytes = b"") -> None:
    """A file of any size that takes no disk."""
    with path.open("wb") as file:
        file.write(head)
        file.truncate(size)


def nifti_header(*shape: int, kind: int = 4, bits: int = 16) -> bytes:
    header = bytearray(352)
    struct.pack_into("<i", header, 0, 348)
    struct.pack_into("<8h", header, 40, len(shape), *shape, *[1] * (7 - len(shape)))
    struct.pack_into("<2h", header, 70, kind, bits)
    struct.pack_into("<8f", header, 76, 1, 1.5, 1.5, 8, 1, 1, 1, 1)
    struct.pack_into("<3f", header, 108, 352, 1, 0)
    header[344:348] = b"n+1\0"
    return bytes(header)


def dicom(folder: Path, syntax: UID = ExplicitVRLittleEndian, **changes: object) -> bytes:
    """A small cine frame, whose header says what the case wants."""
    path = folder / "made.tmp"
    meta = FileMetaDataset()
    meta.TransferSyntaxUID = syntax
    meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID = (
        UID("1.2.840.10008.5.1.4.1.1.4"),
        generate_uid(),
    )
    frame = FileDataset(str(path), {}, file_meta=meta, preamble=bytes(128))
    frame.SOPClassUID, frame.SOPInstanceUID = meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID
    frame.Modality, frame.PatientID = "MR", "P"
    frame.StudyInstanceUID = frame.SeriesInstanceUID = generate_uid()
    frame.Rows = frame.Columns = 64
    frame.BitsAllocated = frame.BitsStored = 16
    frame.HighBit, frame.PixelRepresentation, frame.SamplesPerPixel = 15, 0, 1
    frame.PhotometricInterpretation = "MONOCHROME2"
    frame.ImagePositionPatient, frame.ImageOrientationPatient = [0, 0, 0], [1, 0, 0, 0, 1, 0]
    frame.PixelSpacing, frame.SliceThickness = [1.5, 1.5], 8
    frame.PixelData = np.arange(64 * 64, dtype=np.uint16).tobytes()
    for name, value in changes.items():
        setattr(frame, name, value)
    if syntax in (DEFLATED, JPEG_2000):
        meta.TransferSyntaxUID = ExplicitVRLittleEndian
        if syntax == JPEG_2000:
            meta.TransferSyntaxUID = JPEG_2000
            frame["PixelData"].is_undefined_length = True
    frame.save_as(path, enforce_file_format=True)
    content = path.read_bytes()
    path.unlink()
    return content


def deflated(folder: Path) -> bytes:
    """A DICOM file whose body unpacks to 3 GiB."""
    plain = dicom(folder)
    at = 132 + 12 + int.from_bytes(plain[140:144], "little")
    meta = plain[:at].replace(b"1.2.840.10008.1.2.1\0", b"1.2.840.10008.1.2.1.99"[:20])
    whole = bytearray(meta)
    # The group grows by the two characters that the name of this syntax is longer.
    where = plain.index(b"1.2.840.10008.1.2.1\0")
    whole = bytearray(plain[:where] + b"1.2.840.10008.1.2.1.99" + plain[where + 20 : at])
    struct.pack_into("<H", whole, where - 2, 22)
    struct.pack_into("<I", whole, 140, int.from_bytes(plain[140:144], "little") + 2)
    body = plain[at : plain.index(b"\xe0\x7f\x10\x00")]
    pixels = b"\xe0\x7f\x10\x00OW\0\0" + struct.pack("<I", 3 * GIB)
    return bytes(whole) + zeros(body + pixels, 3072, wbits=-15)


def codestream(width: int, height: int) -> bytes:
    """The beginning of a JPEG 2000 picture of any size, in one fragment."""
    size = struct.pack(">HHIIIIIIIIHBBB", 41, 0, width, height, 0, 0, width, height, 0, 0, 1, 15, 1, 1)
    stream = b"\xff\x4f\xff\x51" + size + b"\xff\x52\0\x0c\0\0\0\1\0\5\4\4\0\1\xff\x5c\0\x13\x40" + bytes(16)
    stream += b"\xff\x90\0\x0a" + bytes(8) + b"\xff\x93" + bytes(64) + b"\xff\xd9"
    return b"\xfe\xff\0\xe0\0\0\0\0\xfe\xff\0\xe0" + struct.pack("<I", len(stream)) + stream


def nested(folder: Path) -> bytes:
    """A DICOM file with sequences within sequences."""
    plain = dicom(folder)
    at = plain.index(b"\xe0\x7f\x10\x00")
    opened = b"\x08\0\x15\x11SQ\0\0\xff\xff\xff\xff\xfe\xff\0\xe0\xff\xff\xff\xff"
    return plain[:at] + opened * 100_000


def in_export(name: str, content: Callable[[Path], bytes]) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        (folder / "in").mkdir()
        (folder / "in" / name).write_bytes(content(folder))

    return make


def sparse_in(name: str, size: int, head: bytes = b"") -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        (folder / "in").mkdir()
        sparse(folder / "in" / name, size, head)

    return make


def text_in(name: str, text: str) -> Callable[[Path], None]:
    return in_export(name, lambda _: text.encode())


def device_in(name: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        (folder / "in").mkdir()
        (folder / "in" / name).symlink_to("/dev/zero")

    return make


def pipe_in(name: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        (folder / "in").mkdir()
        os.mkfifo(folder / "in" / name)

    return make


def study_with(
    volume: bytes | None, text: str | None = None, suffix: str = ".nii.gz"
) -> Callable[[Path], None]:
    """A study folder with one volume, as `prepare` and `release` read it."""

    def make(folder: Path) -> None:
        study = folder / "in" / "S1"
        study.mkdir(parents=True)
        told = {
            "schema": "study-1",
            "study_id": "S1",
            "patient_id": "P1",
            "cohort": ["full"],
            "volumes": [{"sequence": "lge", "view": "sax", "path": f"lge_sax{suffix}"}],
        }
        (study / "study.json").write_text(json.dumps(told) if text is None else text)
        if volume is not None:
            (study / f"lge_sax{suffix}").write_bytes(volume)
        question = {"study": "S1", "subtask": "L01", "answer": "A", "origin": "report"}
        question |= {"verification": {"status": "verified"}}
        (folder / "in" / "q.jsonl").write_text(json.dumps(question) + "\n")

    return make


def review_of(questions: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        text_in("q.jsonl", questions)(folder)
        (folder / "out").mkdir()

    return make


def released(index: str) -> Callable[[Path], None]:
    return text_in("release.json", index)


INGEST = ("ingest", "source=in", "out=out")
PREPARE = ("prepare", "dataset=real", "dataset.studies=in", "dataset.questions=in/q.jsonl")
RELEASE = ("release", "questions=in/q.jsonl", "studies=in", "name=x", "licence=x", "out=out")
VERIFY = ("release", "verify=in")
SWEEP = ("sweep", "model=[oracle]", "mode=plan", "tracker=none")
REVIEW = ("review", "questions=in/q.jsonl", "studies=in", "out=out", "mode=verify", "readers=[anna]")
DRAFT = ("questions", "reports=in/reports.csv", "studies=in", "out=out")


def cases() -> Iterator[Case]:
    """The cases, verb by verb."""
    big = zeros(nifti_header(1024, 1024, 2000), 4000)
    behind = zeros(nifti_header(64, 64, 8) + bytes(2 * 64 * 64 * 8), 4000)
    yield Case("ingest nifti.gz 4 GB", in_export("a.nii.gz", lambda _: big), INGEST, "left out|none of")
    yield Case("ingest nifti.gz tail", in_export("a.nii.gz", lambda _: behind), INGEST, "none of")
    double = zeros(nifti_header(1024, 1024, 60, kind=64, bits=64), 480)
    yield Case("ingest nifti.gz float64", in_export("a.nii.gz", lambda _: double), INGEST, "none of")
    yield Case("ingest raw 4 GB", sparse_in("raw.dat", 4 * GIB - 1), INGEST, "no_image")
    yield Case("ingest marked 4 GB", sparse_in("a.dcm", 4 * GIB - 1, bytes(128) + b"DICM"), INGEST, "none of")
    yield Case(
        "ingest first element 3 GB", sparse_in("a", 3 * GIB, b"\x08\0\x05\0CS\4\0abcd"), INGEST, "none of"
    )
    yield Case("ingest deflated 3 GB", in_export("a.dcm", deflated), INGEST, "broken_file|none of")
    yield Case("ingest nested sequences", in_export("a.dcm", nested), INGEST, "none of")
    jpeg = {"PixelData": codestream(60000, 60000), "Rows": 4096, "Columns": 4096}
    yield Case(
        "ingest JPEG 2000 of 60,000",
        in_export("a.dcm", lambda f: dicom(f, JPEG_2000, **jpeg)),
        INGEST,
        "left out",
    )
    many = {"NumberOfFrames": 2_000_000}
    yield Case("ingest two million frames", in_export("a.dcm", lambda f: dicom(f, **many)), INGEST, "none of")
    yield Case("ingest sidecar deep", text_in("a.json", DEEP), INGEST, "none of")
    yield Case("ingest sidecar 2 GB", sparse_in("a.json", 2 * GIB), INGEST, "none of")
    yield Case("ingest device", device_in("a.dcm"), INGEST, "unreadable")
    yield Case("ingest pipe", pipe_in("a.dcm"), INGEST, "unsafe_path|none of")
    yield Case("ingest source is a pipe", pipe_in("p"), ("ingest", "source=in/p", "out=out"), "neither")
    yield Case("ingest decisions deep", text_in("d", DEEP), (*INGEST, "decisions=in/d"), "d")
    for verb, words in (("prepare", PREPARE), ("release", RELEASE)):
        yield Case(f"{verb} nifti.gz 4 GB", study_with(big), words, "study.json")
        yield Case(f"{verb} nifti.gz tail", study_with(behind), words, "lge_sax")
        yield Case(f"{verb} nifti.gz float64", study_with(double), words, "lge_sax")
        yield Case(f"{verb} study.json deep", study_with(None, DEEP), words, "S1|study.json")
        yield Case(f"{verb} study.json {{}}", study_with(None, "{}"), words, "S1|study.json")
    yield Case("prepare no volume", study_with(None), PREPARE, "lge_sax")
    for name, text in (("deep", DEEP), ("objects", '{"a":' * 100_000), ("blank", ""), ("null", "null")):
        yield Case(f"verify index {name}", released(text), VERIFY, "is no release")
        yield Case(
            f"dataset index {name}", released(text), (*SWEEP, "dataset=in/"), "holds no release|schema"
        )
    yield Case("verify index is a pipe", pipe_in("release.json"), VERIFY, "is no release")
    yield Case("verify index is endless", device_in("release.json"), VERIFY, "is no release")
    yield Case("verify index 8 GB", sparse_in("release.json", 8 * GIB), VERIFY, "is no release")
    for name, text in (("deep", DEEP), ("long line", '{"qa_id": "' + "x" * 10_000_000), ("blank", " ")):
        yield Case(f"review questions {name}", review_of(text), REVIEW, "q.jsonl|studies")
        yield Case(f"release questions {name}", text_in("q.jsonl", text), RELEASE, "q.jsonl")
    yield Case("questions reports 2 GB", sparse_in("reports.csv", 2 * GIB), DRAFT, "reports|studies")
    yield Case("questions reports are a pipe", pipe_in("reports.csv"), DRAFT, "reports|studies")
    for name, text in (("aliases", ALIASES), ("deep", "a: " + DEEP), ("itself", "a: &a [*a]")):
        yield Case(f"sweep conf {name}", conf_with(text), SWEEP, "conf")
    for verb in ("report", "judge", "status", "export", "view"):
        yield Case(f"{verb} run deep", text_in("run.json", DEEP), (verb, "run=in"), "in")
    yield Case("compare runs deep", text_in("run.json", DEEP), ("compare", "a=in", "b=in"), "in")
    yield from of_runs_and_drafts()
    yield from of_layouts()
    yield Case("store of pipes", pipe_in("part-1.parquet"), ("store", "check", "store=in"), "")


def of_runs_and_drafts() -> Iterator[Case]:
    """Files that audits, probes and releases start from."""
    for verb, words in (("audit", ()), ("audit", ("report",))):
        yield Case(
            f"{verb} {''.join(words)} run deep", text_in("run.json", DEEP), (verb, *words, "run=in"), "in"
        )
    for name, make in (
        ("deep", text_in("w.yaml", "fillers: " + DEEP)),
        ("aliases", text_in("w.yaml", ALIASES)),
        ("2 GB", sparse_in("w.yaml", 2 * GIB)),
        ("are a pipe", pipe_in("w.yaml")),
    ):
        yield Case(f"questions words {name}", with_reports(make), (*DRAFT, "words=in/w.yaml"), "w.yaml")
    probe = ("questions", "draft=in", "model=[oracle]")
    for name, text in (("deep", DEEP), ("long line", '{"qa_id": "' + "x" * 10_000_000), ("blank", " ")):
        yield Case(f"questions draft {name}", text_in("questions.jsonl", text), probe, "questions.jsonl|in")


def of_layouts() -> Iterator[Case]:
    """Files of facts beside the images of public sets, and a layout of somebody else."""
    grey = np.random.default_rng(0).integers(0, 1000, (64, 64, 8, 10), dtype=np.int16)
    small = nifti_header(64, 64, 8, 10) + grey.tobytes()
    patient = "patient001/patient001_"
    acdc, mnms = (*INGEST, "layout=acdc"), (*INGEST, "layout=mnms")
    for name, information in (
        ("2 GB", lambda path: sparse(path, 2 * GIB)),
        ("is a pipe", os.mkfifo),
        ("is endless", lambda path: path.symlink_to("/dev/zero")),
        ("is one long line", lambda path: path.write_text("ED: " + "1" * 30_000_000)),
        ("has digits without end", lambda path: path.write_text("ED: " + "9" * 5000 + "\nES: 1e999\n")),
    ):
        make = set_of(f"{patient}4d.nii", small, "patient001/Info.cfg", information)
        yield Case(f"layout acdc, Info.cfg {name}", make, acdc, "Info.cfg|unsafe_path|contradicted")
    for name, text in (
        ("of a million columns", ",".join(map(str, range(1_000_000))) + "\n"),
        ("of an open quotation", 'External code,ED\n"' + "x" * 30_000_000),
        ("of two million rows", "External code,ED\n" + "A1A1A1,1\n" * 2_000_000),
    ):
        make = set_of(
            "A1A1A1/A1A1A1_sa.nii", small, "M&Ms.csv", lambda path, text=text: path.write_text(text)
        )
        yield Case(f"layout mnms, table {name}", make, mnms, "M&Ms.csv|A1A1A1|none of")
    for name, text in (("deep", "title: " + DEEP), ("aliases", ALIASES), ("itself", "a: &a [*a]")):

        def make(folder: Path, text: str = text) -> None:
            (folder / "in").mkdir()
            (folder / "conf" / "layout").mkdir(parents=True)
            (folder / "conf" / "layout" / "theirs.yaml").write_text(text)

        yield Case(f"layout of a user, {name}", make, (*INGEST, "layout=theirs"), "theirs")


def set_of(
    image: str, content: bytes, information: str, write: Callable[[Path], object]
) -> Callable[[Path], None]:
    """A public set of one image and a file of facts."""

    def make(folder: Path) -> None:
        for name in (image, information):
            (folder / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "in" / image).write_bytes(content)
        write(folder / "in" / information)

    return make


def with_reports(make: Callable[[Path], None]) -> Callable[[Path], None]:
    """One report beside what `make` writes."""

    def both(folder: Path) -> None:
        make(folder)
        (folder / "in" / "reports.csv").write_text("study_id,text\nS1,No LGE.\n")

    return both


def study_and(name: str, text: str) -> Callable[[Path], None]:
    """A study with its question, and a file beside it."""

    def make(folder: Path) -> None:
        study_with(nifti_header(64, 64, 8) + bytes(2 * 64 * 64 * 8), suffix=".nii")(folder)
        (folder / "in" / name).write_text(text)

    return make


def conf_with(text: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        (folder / "conf" / "model").mkdir(parents=True)
        (folder / "conf" / "model" / "theirs.yaml").write_text(text)

    return make


@dataclass(frozen=True)
class Outcome:
    """What a command took, and what it said."""

    peak: int
    seconds: float
    code: int | None
    output: str


def run(case: Case, folder: Path) -> Outcome:
    """Run a case in its folder; the peak is that of its largest process, sampled."""
    case.make(folder)
    started, peak = time.monotonic(), 0
    command = [sys.executable, "-m", f"cardiolens.{case.words[0]}", *case.words[1:]]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    with (folder / "said").open("w+b") as said:
        process = subprocess.Popen(
            command, cwd=folder, stdout=said, stderr=said, start_new_session=True, env=environment
        )
        while process.poll() is None and time.monotonic() - started < MOST_SECONDS * 1.5:
            peak = max(peak, *resident(process.pid), 0)
            time.sleep(0.02)
        seconds = time.monotonic() - started
        if process.poll() is None:
            os.killpg(process.pid, 9)
        said.seek(0)
        return Outcome(peak, seconds, process.poll(), said.read().decode("utf-8", "replace"))


def resident(session: int) -> Iterator[int]:
    """Resident bytes of each process of a session."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(stat[3]) == session:
                    yield int(stat[21]) * os.sysconf("SC_PAGE_SIZE")
            except (OSError, IndexError):
                continue


def verdict(case: Case, outcome: Outcome) -> str:
    """What is wrong with an outcome; "" if nothing is."""
    wrong = []
    if outcome.peak > MOST_MEMORY:
        wrong.append("memory")
    if outcome.seconds > MOST_SECONDS or outcome.code is None:
        wrong.append("time")
    if "Traceback" in outcome.output:
        wrong.append("traceback")
    if outcome.code not in (0, 1, 2):
        wrong.append(f"exit {outcome.code}")
    if case.reason and not any(word in outcome.output for word in case.reason.split("|")):
        wrong.append("not named")
    return ", ".join(wrong)


def main() -> int:
    """Print a line per case; return 1 if one failed."""
    chosen = sys.argv[1] if len(sys.argv) > 1 else ""
    failed = total = 0
    print(f"{'case':<34}{'MiB':>7}{'s':>7}{'exit':>6}  wrong")
    for case in cases():
        if chosen not in case.name:
            continue
        with tempfile.TemporaryDirectory() as name:
            outcome = run(case, Path(name))
        wrong = verdict(case, outcome)
        total, failed = total + 1, failed + bool(wrong)
        print(
            f"{case.name:<34}{outcome.peak / MIB:>7.0f}{outcome.seconds:>7.1f}{outcome.code!s:>6}  {wrong}",
            flush=True,
        )
        if wrong:
            print("    " + " | ".join(outcome.output.strip().splitlines()[-3:])[:600], flush=True)
    print(f"{total - failed} of {total}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
