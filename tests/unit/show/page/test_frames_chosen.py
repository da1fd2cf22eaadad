"""What the page says of readers that chose their frames, against what was seen."""

import json
from collections.abc import Callable

from page_markup import Markup, records
from page_run import write_record
from pyarrow import parquet
from small_cohort import reader, sweep_spec, swept

from cardiolens.inference.engine.ask import Ask, Engine, Pictures, Reply
from cardiolens.show.export.dataset_export import write_dataset
from cardiolens.show.page.charts import chart_forms
from cardiolens.show.page.columns import ENDING_WORDS
from cardiolens.show.page.page_data import read_facts
from cardiolens.show.page.page_rendering import render

PATIENTS = 2
SELF = {"name": "self", "kind": "self"}


class Asking(Engine):
    """Reader that asks for some of the names on offer, or for others, and answers A."""

    def __init__(self, choose: Callable[[list[str]], list[str]], finish_reason: str = "stop") -> None:
        self._choose = choose
        self._finish_reason = finish_reason

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        text = "ANSWER: A"
        if ask.answer_type == "frames":
            text = json.dumps({"frames": self._choose(list(ask.constraint.naming.names))})
        return Reply(text=text, finish_reason=self._finish_reason, prompt_tokens=1, output_tokens=1)


def test_an_illegal_selection_ends_its_questions_and_is_counted_as_that(root):
    model = reader("uniform") | {"name": "stubborn"}
    spec = sweep_spec(root, model, selector=[SELF], budget=[4], subtask=["C10"], name="stubborn")
    planned, judged = swept(spec, Asking(lambda names: ["everything"], finish_reason="length"))
    write_record(planned, judged)
    shown = Markup(render(read_facts(planned.run, [planned.run])).index)
    assert [row["ending"] for row in records(shown.tables["endings_by_arm"])] == ["illegal selection"]


def test_the_chart_of_endings_has_a_colour_for_each():
    scale = chart_forms()["endings"]["encoding"]["color"]["scale"]
    assert scale["domain"] == list(ENDING_WORDS.values())
    assert len(set(scale["range"])) == len(scale["domain"])


def test_an_export_has_the_frames_that_were_chosen_and_no_words(root):
    spec = sweep_spec(root, reader("uniform"), selector=[SELF], budget=[4], subtask=["C10"], name="exported")
    planned, results = swept(spec, Asking(lambda names: names[:4]))
    write_record(planned, results)
    folder = write_dataset(planned.run, patient_ids=False)
    rows = parquet.read_table(folder / "seen" / "seen.parquet").to_pylist()
    answered = parquet.read_table(folder / "answers")["request_key"].to_pylist()
    last = {row["request_key"]: row for row in rows}
    assert set(answered) == set(last)
    assert all(len(row["frames"]) == 4 for row in last.values())
    assert not {"prompt", "reply"} & set(rows[0])
    assert "seen/*.parquet" in (folder / "README.md").read_text()
