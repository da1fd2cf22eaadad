"""The phantom as public sets are downloaded: names, headers and the truth beside them."""

import json

import nibabel as nib
import pytest

from cardiolens.base.errors import InputError
from cardiolens.config.dataset import PhantomSpec
from cardiolens.phantom.sets.set_export import make_set
from jobs.make_phantom import read


def test_acdc_has_unit_columns_beside_true_lengths(tmp_path):
    make_set(PhantomSpec(canonical=("PH-NORMAL",)), "acdc", tmp_path / "made")
    home = tmp_path / "made" / "export" / "database" / "training" / "patient001"
    header = nib.load(home / "patient001_4d.nii.gz").header
    assert [abs(header[row][column]) for column, row in enumerate(("srow_x", "srow_y", "srow_z"))] == [
        1,
        1,
        1,
    ]
    assert header.get_zooms()[:3] == pytest.approx((3.2, 3.2, 9.35556), rel=1e-5)
    assert "Group: NOR" in (home / "Info.cfg").read_text()
    [truth] = [json.loads(line) for line in (tmp_path / "made" / "truth.jsonl").read_text().splitlines()]
    assert (truth["subject"], truth["study_id"], truth["group"]) == ("patient001", "PH-NORMAL", "NOR")


@pytest.mark.parametrize("word", ["reports=free", "masks=true", "vendor=siemens"])
def test_words_that_no_public_set_has_are_refused(word):
    with pytest.raises(InputError, match="leave it out"):
        read(["dataset=phantom_ci", "format=acdc", word])
