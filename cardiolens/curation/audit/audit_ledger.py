"""What a person read in the replies of an audit, a line each; of several on one reply the last counts."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from cardiolens.base.errors import InputError

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
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
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
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
            file.flush()
        self.readings[place] = keys
