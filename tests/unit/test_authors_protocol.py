"""The protocol `authors-1` from plan to scores: both protocols together, both forms of None, letters."""

from pathlib import Path
from typing import Any

import pytest
from small_cohort import questions_of, reader, requests_of, sweep_spec, swept

from cardiolens.base.errors import InputError
from cardiolens.config.dataset import PhantomSpec
from cardiolens.inference.plan.plan import plan
from cardiolens.phantom import phantom_cohort
from cardiolens.protocol.replies import read_reply
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.protocol.tasks.legal import constraint_of
from cardiolens.protocol.tasks.questions import write_questions

BOTH = "openprotocol-1+authors-1"
PATIENTS = 4
PROMPTS = [{"name": name, "style": name, "max_tokens": 64} for name in ("standard", "reasoning")]


def questions(root: Path, protocol: str) -> Path:
    """Write the questions of a protocol on the patients of a small cohort."""
    catalogue, rows = load_catalogue(protocol), []
    for number in range(1, PATIENTS + 1):
        rows += questions_of(f"PH-{number:04d}", catalogue)
    write_questions(root / f"{protocol}.jsonl", rows)
    return root / f"{protocol}.jsonl"


def spec_of(root: Path, protocol: str, *models: dict[str, Any], **changes: Any) -> Any:
    dataset = {"name": "small", "studies": root, "questions": questions(root, protocol), "protocol": protocol}
    return sweep_spec(root, *models, dataset=dataset, prompt=PROMPTS, **changes)


def requests(root: Path, protocol: str, **changes: Any) -> list[dict[str, Any]]:
    return requests_of(plan(spec_of(root, protocol, reader("uniform"), **changes)))


@pytest.mark.full
@pytest.mark.parametrize("protocol", [BOTH, "authors-1-gated"])
@pytest.mark.parametrize("answer_format", ["letters", "choice"])
def test_the_oracle_scores_100(root: Path, protocol: str, answer_format: str) -> None:
    controls = ["none", "shuffled_options"]
    spec = spec_of(root, protocol, reader("oracle"), control=controls, answer_format=answer_format)
    _, results = swept(spec)
    scores = {(row["metric"], row["scope"]): row["value"] for row in results.scores.to_pylist()}
    assert scores["primary", "tier:1"] == scores["set_accuracy", "view:lge_sax"] == 100
    assert {value for (metric, _), value in scores.items() if metric in ("primary", "hit", "set_f1")} == {100}


def test_both_together_ask_each_as_alone(root: Path) -> None:
    each, both = (
        {(row["arm_id"], row["qa_id"]): row["request_key"] for name in names for row in requests(root, name)}
        for names in (["openprotocol-1", "authors-1"], [BOTH])
    )
    assert both == each


def test_prompts_ask_for_letters_first_and_show_the_letter_of_none(root: Path) -> None:
    prompts = {
        (row["qa_id"], row["template"].partition("@")[0]): row["prompt"] for row in requests(root, BOTH)
    }
    standard, reasoning = (
        prompts["PH-0001:AL04", name] for name in ("question_standard", "question_reasoning")
    )
    assert "\nZ. None\n" in standard
    assert "G. None" not in standard
    assert "pick only Z" in standard
    assert "ANSWER" not in standard + reasoning
    assert "5. settle the walls" in reasoning
    assert "Reason:" in reasoning
    assert "Reason:" not in standard
    assert "ANSWER: <letter" in prompts["PH-0001:C02", "question_standard"]


def test_decoding_constrains_the_first_line(root: Path) -> None:
    formats = {row["answer_format"] for row in requests(root, BOTH, answer_format="choice")}
    assert formats == {"choice", "first_line", "last_line", "json"}
    held = constraint_of("first_line", "multi", ("B", "Z", "A"), ("Z",))
    assert held.legal == ("B", "A", "Z", "A, Z")  # Z is shown as B
    assert held.pattern.endswith(r")\nReason: (.|\n)*")
    with pytest.raises(InputError, match=r"answer_format json: subtask AC01 of authors-1"):
        plan(spec_of(root, "authors-1", reader("uniform"), answer_format="json"))


WALLS = tuple((option.key, option.text) for option in load_catalogue("authors-1")["AL04"].options)
REPLIES = [
    ("B\nReason: A bright area lies in the wall.", ("B",)),
    ("A, B\nReason: C is normal, D and E too.", ("A", "B")),
    ("B\nReason: I think D would be too, but B it is.", ("B",)),
    ("Z\n\n**Reason:** None of the walls is bright; A is dark.", ("Z",)),
    ("B\nReason: C is dark.\nANSWER: D", ("D",)),
]


@pytest.mark.parametrize(("reply", "letters"), REPLIES)
def test_capitals_of_the_reason_are_no_letters(reply: str, letters: tuple[str, ...]) -> None:
    assert read_reply(reply, WALLS, several=True).answers == letters


def test_questions_of_another_protocol_are_added_to_the_same_studies_alone(tmp_path: Path) -> None:
    spec = PhantomSpec(canonical=("PH-NORMAL",), size="ci")
    phantom_cohort.make_cohort(spec, tmp_path / "cohort")
    before = (tmp_path / "cohort" / "questions.jsonl").read_text()
    phantom_cohort.add_questions(spec, tmp_path / "cohort", "authors-1", "questions.authors-1.jsonl")
    assert '"AC01"' in (tmp_path / "cohort" / "questions.authors-1.jsonl").read_text()
    assert (tmp_path / "cohort" / "questions.jsonl").read_text() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cohort"]
    other = spec.model_copy(update={"seed": 7})
    with pytest.raises(InputError, match="its studies are not those"):
        phantom_cohort.add_questions(other, tmp_path / "cohort", "authors-1", "other.jsonl")
