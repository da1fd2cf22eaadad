"""What a person read in the replies of an audit, a line each; of several on one reply the last counts."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_text

LEDGER = "audit.jsonl"
Place = tuple[str, str]  # arm_id and qa_id


@dataclass
class AuditLedger:
    """Readings by the place of their reply, kept in a file that only grows."""

    path: Path
    readings: dict[Place, tuple[str, ...]] = field(default_factory=dict)  # option keys; none: no answer

    @staticmethod
    def of(path: Path) -> "AuditLedger":
        """Read a ledger; InputError for a line that is none of its own."""
        ledger = AuditLedger(path)
        if path.is_file():
            for number, line in enumerate(read_text(path).splitlines(), 1):
                try:
                    entry = json.loads(line)
                    ledger.readings[str(entry["arm_id"]), str(entry["qa_id"])] = tuple(
                        map(str, entry["keys"])
                    )
                except (ValueError, KeyError, TypeError) as error:
                    raise InputError(f"{path}, line {number}: is no reading ({error}); remove it") from error
        return ledger

    def add(self, place: Place, keys: tuple[str, ...]) -> None:
        """Append a reading; it is on disk when this returns."""
        entry = {"arm_id": place[0], "qa_id": place[1], "keys": list(keys)}
        handle = disk.open_log(self.path)
        try:
            disk.append(handle, (json.dumps(entry) + "\n").encode(), self.path)
        finally:
            os.close(handle)
        self.readings[place] = keys
