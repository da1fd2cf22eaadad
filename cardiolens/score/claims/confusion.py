"""Confusion matrices (gold by predicted) as rows, for every subtask with one right option."""

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.score.statistics.statistic import Row
from cardiolens.score.statistics.verdict_rows import Verdicts, blocks

JOINT = "D01+D02"  # seven classes: A Normal, B ICM, and the subtypes of C (NICM) as CA to CE
_UNPARSED = "unparsed"
_COLUMNS = ("arm_id", "patient_id", "subtask", "answer_type", "status", "gold", "parsed")
_CELL = ("arm_id", "subtask", "gold", "predicted")


def confusion_rows(verdicts: pa.Table | Verdicts) -> list[Row]:
    """Count each predicted option for each gold one, by arm and subtask, without zero cells.

    `D01+D02` joins both diagnoses of a patient. The subtype is asked only where NICM is true, so that a
    patient wrongly called NICM is predicted `C`.
    """
    cells = [row for rows in blocks(verdicts, _COLUMNS) for row in _rows(rows)]
    return sorted(cells, key=lambda row: [str(row[name]) for name in _CELL])


def _rows(verdicts: pa.Table) -> list[Row]:
    """The rows of whole arms."""
    one_right = pc.is_in(verdicts["answer_type"], pa.array(["single", "ordinal"]))
    judged = verdicts.filter(pc.and_(one_right, pc.equal(verdicts["status"], "judged")))
    columns = {
        "arm_id": judged["arm_id"],
        "subtask": judged["subtask"],
        "gold": pc.binary_join(judged["gold"], ""),
        "predicted": _called(judged["parsed"]),
    }
    table = pa.table(columns)
    counts = pa.concat_tables([table, _joint(table.append_column("patient_id", judged["patient_id"]))])
    counts = counts.group_by(list(_CELL)).aggregate([([], "count_all")])
    rows: list[Row] = counts.rename_columns([*_CELL, "n"]).to_pylist()
    return rows


def _called(parsed: pa.ChunkedArray) -> pa.ChunkedArray:
    predicted = pc.binary_join(parsed, "")
    return pc.if_else(pc.equal(predicted, ""), _UNPARSED, predicted)


def _joint(answers: pa.Table) -> pa.Table:
    """One row per patient and arm with a judged D01 and, if the gold is NICM, a judged D02."""
    names = ["arm_id", "patient_id", "gold", "predicted"]
    first, second = (
        answers.filter(pc.equal(answers["subtask"], subtask)).select(names) for subtask in ("D01", "D02")
    )
    diagnoses = first.join(second, ["arm_id", "patient_id"], right_suffix="_subtype")
    nonischaemic = pc.equal(diagnoses["gold"], "C")
    diagnoses = diagnoses.filter(pc.or_(pc.invert(nonischaemic), pc.is_valid(diagnoses["gold_subtype"])))
    called = pc.and_(pc.equal(diagnoses["predicted"], "C"), pc.is_valid(diagnoses["predicted_subtype"]))
    return pa.table(
        {
            "arm_id": diagnoses["arm_id"],
            "subtask": pa.repeat(JOINT, diagnoses.num_rows),
            "gold": pc.binary_join_element_wise(
                diagnoses["gold"], pc.fill_null(diagnoses["gold_subtype"], ""), ""
            ),
            "predicted": pc.if_else(
                called,
                pc.binary_join_element_wise(diagnoses["predicted"], diagnoses["predicted_subtype"], ""),
                diagnoses["predicted"],
            ),
        }
    )
