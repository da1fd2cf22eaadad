"""Another protocol is another set of data files: a phantom's answers and reports are made by them."""

import json
from pathlib import Path

from cardiolens.config.dataset import PhantomSpec
from cardiolens.phantom.phantom_cohort import make_cohort

MINIATURE = Path(__file__).parents[2] / "miniature"
# what the data files make of the truth of two studies
ANSWERS = {
    "PH-NORMAL:SCAR": ["A"],
    "PH-NORMAL:PUMP": ["A"],
    "PH-NORMAL:CAUSE": ["A"],
    "PH-ICM-LAD:SCAR": ["B"],
    "PH-ICM-LAD:SCAR-SIDE": ["A"],
    "PH-ICM-LAD:PUMP": ["B"],
    "PH-ICM-LAD:CAUSE": ["B"],
}


def test_questions_are_those_of_the_data_files_and_name_their_protocol(tmp_path: Path) -> None:
    """Asked, answered and scored to a page: tests/unit/test_brain.py."""
    phantoms = PhantomSpec(canonical=("PH-NORMAL", "PH-ICM-LAD"), n_sampled=0, size="ci")
    make_cohort(phantoms, tmp_path / "data", str(MINIATURE))
    records = [json.loads(line) for line in (tmp_path / "data" / "questions.jsonl").read_text().splitlines()]
    assert {record["protocol"] for record in records} == {"miniature-1"}
    assert {record["qa_id"]: record["answer"] for record in records if "answer" in record} == ANSWERS
    notes = {record["study_id"]: record["reference"]["fields"] for record in records if "reference" in record}
    assert notes["PH-NORMAL"] == {"enhancement": "No", "regions": []}
    assert notes["PH-ICM-LAD"] == {"enhancement": "Yes", "regions": ["Front or septum"]}
