"""A protocol of your own: `python examples/own_protocol.py my_protocol`, then `dataset.protocol=my_protocol`.

It is the packaged one under another name, with one more question on T2-weighted images. The catalogue is
checked when it is loaded, so that a slip is named here and not in the middle of a sweep.
"""

import shutil
import sys
from pathlib import Path

import yaml

from cardiolens.protocol.tasks.catalogue import Catalogue, load_catalogue
from cardiolens.study.anatomy import protocol_folder

SUBTASK = {
    "id": "T05",
    "tier": 1,
    "sequence": "t2",
    "field": "slow_flow",
    "question": "Is there bright slow flow at the edge of the cavity?",
    "wordings": ["Does slow flow brighten the edge of the cavity?"],
    "answer_type": "single",
    "options": [
        {"key": "A", "text": "No", "values": ["none"], "normal": True},
        {"key": "B", "text": "Yes", "values": ["present"]},
    ],
    "route": {"t2_sax": 3},
    "checklist": [
        "check blood suppression",
        "look at the edge of the cavity",
        "compare slices",
        "compare with the muscle",
        "decide",
    ],
    "provenance": "our own",
}


def make(folder: Path) -> Catalogue:
    """Write the protocol's data files; its catalogue, checked."""
    shutil.copytree(protocol_folder("openprotocol-1"), folder)
    named = yaml.safe_load((folder / "protocol.yaml").read_text())
    (folder / "protocol.yaml").write_text(yaml.safe_dump(named | {"protocol": "ours-1"}, sort_keys=False))
    t2 = yaml.safe_load((folder / "t2.yaml").read_text())
    t2["subtasks"].append(SUBTASK)
    (folder / "t2.yaml").write_text(yaml.safe_dump(t2, sort_keys=False))
    return load_catalogue(str(folder))


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        sys.exit(0 if sys.argv[1:2] in (["-h"], ["--help"]) else 2)
    made = make(Path(sys.argv[1]))
    print(f"{made.protocol}: {len(made.subtasks)} subtasks, {made['T05'].question}")
