"""Read the NIfTI files of an export in worker processes, each within limits."""

from collections.abc import Sequence

from cardiolens.base.untrusted.file_place import Place
from cardiolens.base.untrusted.resource_limits import limited
from cardiolens.curation.ingest.image import HeaderRule, RejectedError
from cardiolens.curation.ingest.nifti.nifti_file import Scan, scan
from cardiolens.curation.ingest.pixels import MEMORY, SECONDS
from cardiolens.curation.ingest.reasons import Reason
from cardiolens.runtime.processes import spread

_WORTH = 16  # files from which further processes gain more than their start takes

Rejection = tuple[Reason, str]
"""Why a file is left out, and a detail that quotes nothing of it."""

_Way = tuple[Place, bool, HeaderRule]


def read_scans(paths: Sequence[str], ways: Sequence[_Way]) -> dict[str, Scan | Rejection]:
    """What each file holds, or why it holds nothing that can be used.

    `ways` says of each file where it is, whether it holds one phase, and what holds of its header.
    """
    scans = spread(_scan, ways, worth=len(ways) >= _WORTH, lost=lambda _: (Reason.READER_ENDED, ""))
    return dict(zip(paths, scans, strict=True))


def _scan(way: _Way) -> Scan | Rejection:
    place, one_phase, rule = way
    try:
        with limited(MEMORY + 4 * place.size(), SECONDS):
            return scan(place, one_phase=one_phase, rule=rule)
    except RejectedError as error:
        return error.reason, error.detail
    except MemoryError:
        return Reason.TOO_LARGE, ""
    except OSError as error:
        return Reason.UNREADABLE, type(error).__name__
    except ValueError as error:
        return Reason.BROKEN_NIFTI, type(error).__name__
