"""What a person read in the replies of an audit, a line each; of several on one reply the last counts."""

from pathlib import Path
from typing import Final

from cardiolens.config.base import Spec
from cardiolens.storage.decision_log import DecisionLog, read_decision_lines

LEDGER: Final = "audit.jsonl"
SCHEMA: Final = "audit-reading-1"
Place = tuple[str, str]  # arm_id and qa_id
Readings = dict[Place, tuple[str, ...]]  # option keys; none: no answer


class Line(Spec):
    """What a person read in one reply: keys of options."""

    arm_id: str
    qa_id: str
    keys: tuple[str, ...] = ()


def read_readings(path: Path) -> Readings:
    """Readings by the place of their reply; InputError for a line that is none."""
    if not path.exists():
        return {}
    lines = read_decision_lines(path, Line, SCHEMA, name=str(path))
    return {(line.arm_id, line.qa_id): line.keys for _, line in lines}


class AuditLedger:
    """Readings in a file that only grows, written by one page at a time."""

    def __init__(self, path: Path) -> None:
        """Open a ledger; InputError if another page writes to it, or for a line that is no reading."""
        self.path = path
        self._log: DecisionLog[Line] = DecisionLog(path, SCHEMA, name=str(path), writer="audit page")
        try:
            self.readings = read_readings(path)
            self._log.mend()
        except BaseException:
            self.close()
            raise

    def add(self, place: Place, keys: tuple[str, ...]) -> None:
        """Append a reading; it is on disk when this returns. OSError if the disk does not take it."""
        self._log.append(Line(arm_id=place[0], qa_id=place[1], keys=keys))
        self.readings[place] = keys

    def close(self) -> None:
        self._log.close()
