"""Make `examples/hospital/export.zip`: `python -m tests.support.hospital FOLDER`; the example is its output.

Six patients as one maker's scanner exports them, in small frames and few views, with a scout and a report.
"""

import sys
from itertools import islice
from pathlib import Path
from unittest.mock import patch
from zipfile import ZIP_DEFLATED, ZipFile

from cardiolens.config.dataset import PhantomSpec
from cardiolens.phantom.planes import Size, views
from tests.support.dicom import dicom_export, stacks
from tests.support.dicom.exam import ExportSpec
from tests.support.dicom.stacks import scouts
from tests.support.free_text.report_writer import make_reports

SPEC = PhantomSpec(n_sampled=6, seed=4711)
SIZE = Size(pixels=46, spacing_mm=4.4, phases=6, beats=2, layers=1)
VIEWS = ("cine_sax", "cine_4ch", "lge_sax", "t2_4ch")


def main(folder: Path) -> None:
    """Write the export and the reports to a new folder, and pack both beside it."""
    chosen = {code: views()[code] for code in VIEWS}
    with (
        patch.object(dicom_export, "sizes", lambda: {"ci": SIZE}),
        patch.object(stacks, "views", lambda: chosen),
        patch.object(dicom_export, "scouts", lambda camera: islice(scouts(camera), 1)),
    ):
        dicom_export.make_export(SPEC, ExportSpec(vendor="siemens", wrong_names=0.5), folder / "dicom")
    make_reports(SPEC, folder / "text")
    parts = {"export": folder / "dicom" / "export", "reports": folder / "text" / "reports"}
    with ZipFile(folder / "export.zip", "w", ZIP_DEFLATED, compresslevel=9) as packed:
        for name, part in parts.items():
            for path in sorted(one for one in part.rglob("*") if one.is_file()):
                packed.write(path, f"{name}/{path.relative_to(part).as_posix()}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
