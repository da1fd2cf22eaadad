"""The anatomy of a protocol: what it derives, and errors that name file, key, value and what is expected."""

import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from cardiolens.base.errors import InputError
from cardiolens.config.dataset import Windows
from cardiolens.study.anatomy import DATA, anatomy_of, check_heart, heart, load_anatomy

BRAIN = Path(__file__).resolve().parents[3] / "examples" / "brain" / "protocol"
AX = {"words": "axial", "slices": {"first": "inferior", "last": "superior", "levels": ["a", "b", "c"]}}
T1 = {"prefix": "t1", "words": "T1", "over_time": "nothing", "views": ["ax"]}
SMALL: dict[str, Any] = {
    "words": "knee MRI",
    "frame": "patient",
    "views": {"ax": AX},
    "sequences": {"t1": T1},
}


def loaded(folder: Path, **changes: Any) -> Any:
    path = folder / "anatomy.yaml"
    path.write_text(yaml.safe_dump(SMALL | changes))
    return load_anatomy(path)


def test_a_folder_without_an_anatomy_is_about_the_heart(tmp_path: Path) -> None:
    assert anatomy_of("medthinkvqa-1") is heart()
    assert anatomy_of(str(tmp_path)) is heart()
    shutil.copy(DATA / "openprotocol-1" / "anatomy.yaml", tmp_path)
    assert anatomy_of(str(tmp_path)) is heart()
    assert heart().orders == ("base_to_apex", "apex_to_base", "unknown")


def test_an_anatomy_is_the_same_in_another_process() -> None:
    copied = pickle.loads(pickle.dumps(heart()))
    assert copied == heart()
    assert hash(copied) == hash(heart())
    assert copied != anatomy_of(str(BRAIN))


def test_an_anatomy_of_one_volume_is_enough(tmp_path: Path) -> None:
    knee = loaded(tmp_path)
    assert knee.volume_ids == ("t1_ax",)
    assert knee.members("t1_ax") == ("t1_ax",)
    assert knee.orders == ("inferior_to_superior", "superior_to_inferior", "unknown")
    with pytest.raises(InputError, match=r"masks: is about the heart, .* knee MRI"):
        check_heart(knee, "masks")


def test_windows_of_sequences_stand_behind_those_of_the_dataset(tmp_path: Path) -> None:
    knee = loaded(tmp_path, sequences={"t1": T1 | {"window_pct": [2, 99.8]}})
    assert knee.windows(Windows()).of("t1", "t1_ax") == (2, 99.8)
    assert knee.windows(Windows(by_name={"t1": (5, 95)})).of("t1", "t1_ax") == (5, 95)
    assert knee.windows(Windows(by_name={"t1_ax": (5, 95)})).of("t1", "t1_ax") == (5, 95)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sequences": {"multi": T1}}, "sequences.multi: the name is reserved"),
        ({"sequences": {"t1": T1, "t2": T1}}, "2 of them have a volume 't1_ax'; give each its own prefix"),
        (
            {"sequences": {"t1": T1 | {"window_pct": [99, 2]}}},
            "window_pct: expected two percentiles, low below",
        ),
        ({"sequences": {"t1": T1 | {"prefix": "../t1"}}}, r"prefix: .*got '\.\./t1'"),
        (
            {"views": {"ax": AX | {"display": {"right": "left", "up": "right"}}}},
            "up right; expected two axes",
        ),
        (
            {"pools": {"all": {"volumes": ["t1_ax"], "cascade": "weighted"}}},
            "weights: expected one for each of",
        ),
        ({"fallback": {"t1_ax": ["t1_ax", "t1_ax"]}}, "names one volume twice"),
    ],
)
def test_a_contradiction_is_named(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        loaded(tmp_path, **changes)
    assert str(caught.value).startswith(f"{tmp_path}/anatomy.yaml: ")
    assert "correct anatomy.yaml" in str(caught.value)
