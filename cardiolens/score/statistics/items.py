"""Verdicts as arrays: answers to choice questions and reports, of one arm and of every arm."""

import string
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cardiolens.score.statistics.verdict_rows import Verdicts, cohort, judged_shares
from cardiolens.storage.spool import SpilledMapping

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# From so many on, how hospitals differ can be estimated, if roughly; fewer speak of themselves alone.
FEWEST_HOSPITALS = 5
_KEYS = pa.array(string.ascii_uppercase)
# counts of the fields and of the text of a report, which its scores add up
ENTITY_COUNTS = (
    *("tp", "fp", "fn", "abnormal_tp", "abnormal_fp", "abnormal_fn"),
    *("gates", "contradicted", "fields", "fields_equal"),
)
TEXT_COUNTS = (
    *("lcs", "reference_words", "words", "reports", "rouge_l"),
    *(f"{kind}_{n}" for kind in ("match", "gram") for n in (1, 2, 3, 4)),
)
_NAMES = (*ENTITY_COUNTS, *TEXT_COUNTS)
# means over reports of the values of optional metrics, where these are enabled
_PLUGGED = ("meteor", "bertscore_precision", "bertscore_recall", "bertscore_f1")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The names in verdicts, which arrays have codes for: patients, questions, counts and entities."""

    patients: list[str]  # sorted
    questions: pa.Array  # sorted
    counts: frozenset[str]  # of reports
    entities: tuple[str, ...]  # of reports, sorted

    @staticmethod
    def of(verdicts: Verdicts) -> "Vocabulary":
        """Collect the vocabulary of verdicts."""
        questions = pa.array([], pa.string())
        counts: set[str] = set()
        entities: set[str] = set()
        for rows in verdicts.blocks(["qa_id", "channel", "parsed", "gold", "counts"]):
            questions = pc.unique(pa.concat_arrays([questions, pc.unique(rows["qa_id"])]))
            is_report = pc.is_in(rows["channel"], value_set=pa.array(["fields", "text"]))
            reports = rows.filter(is_report).combine_chunks()
            counts.update(pc.unique(reports["counts"].combine_chunks().keys).to_pylist())
            for name in ("gold", "parsed"):
                entities.update(pc.unique(pc.list_flatten(reports[name])).to_pylist())
        questions = questions.take(pc.sort_indices(questions))  # sums over them keep their order
        return Vocabulary(cohort(verdicts), questions, frozenset(counts), tuple(sorted(entities)))


def hospital_codes(patients: Sequence[str], hospitals: Mapping[str, str]) -> Ints | None:
    """A number for the hospital of each patient; None unless every patient's is known, and five or more."""
    names = [hospitals[patient] for patient in patients if patient in hospitals]
    distinct, codes = np.unique(np.array(names, np.str_), return_inverse=True)
    is_known = len(names) == len(patients) and len(distinct) >= FEWEST_HOSPITALS
    return codes.astype(np.int64) if is_known else None


def optional_metrics(counts: Collection[str]) -> tuple[str, ...]:
    """Return the optional metrics among the names of counts; those of other packages are `package:name`."""
    return (*(name for name in _PLUGGED if name in counts), *sorted(name for name in counts if ":" in name))


@dataclass(frozen=True, slots=True)
class Rows:
    """What rows of verdicts have in common, whatever was asked: arrays with an entry for each row."""

    subtask: NDArray[np.str_]
    parse_status: NDArray[np.str_]
    question: Ints  # code of the qa_id in the vocabulary
    request: Ints  # code of the request_key
    patient: Ints  # row of the cohort
    judged: Bools  # whether there was a reply to judge

    def where(self, selection: Bools | Ints | slice) -> Self:
        """Select rows by a mask, indices or a slice."""
        return replace(self, **{name: column[selection] for name, column in self._columns().items()})

    def by_subtask(self) -> Iterator[tuple[str, Self]]:
        """Yield the rows of each subtask with its name, sorted."""
        names, code = np.unique(self.subtask, return_inverse=True)
        for at, name in enumerate(names.tolist()):
            yield name, self.where(code == at)

    def joined_with(self, other: Self) -> Self:
        """Concatenate with other rows; the result is not sorted."""
        others = other._columns()
        return replace(
            self, **{name: np.concatenate([own, others[name]]) for name, own in self._columns().items()}
        )

    def _columns(self) -> dict[str, Any]:
        entries = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: entry for name, entry in entries.items() if isinstance(entry, np.ndarray)}

    def __len__(self) -> int:
        return len(self.patient)


@dataclass(frozen=True, slots=True)
class Items(Rows):
    """Answers to choice questions, sorted by (arm, subtask, patient, question).

    `gold` and `parsed` hold bit k for the k-th option of the subtask; an unparsed answer has no bit.
    """

    sequence: NDArray[np.str_]
    answer_type: NDArray[np.str_]
    tier: Ints
    options: Ints  # how many
    gold: Ints
    parsed: Ints

    @property
    def size(self) -> int:
        """The largest number of options."""
        named = int(np.bitwise_or.reduce(self.gold | self.parsed, initial=1)).bit_length()
        return max(named, int(self.options.max(initial=1)))


@dataclass(frozen=True, slots=True)
class Reports(Rows):
    """Channels of reports, sorted by (arm, subtask, patient, question, channel)."""

    channel: NDArray[np.str_]
    counts: Floats  # (row, name in names)
    parsed: Ints  # code of the set of named entities
    gold: Bools  # (row, name in entities)
    predicted: Bools  # (row, name in entities)
    names: tuple[str, ...]
    entities: tuple[str, ...]  # as named in verdicts, e.g. "lv_size: Normal size"

    @property
    def of_fields(self) -> "Reports":
        """The rows of structured fields; the text of a report is not an item of its own."""
        return self.where(self.channel == "fields")


def reports(verdicts: pa.Table, vocabulary: Vocabulary) -> Reports:
    """Read the reports of a table of verdicts, judged or not, in the order of Reports."""
    rows = _rows_of(verdicts, ["fields", "text"])
    names = (*_NAMES, *optional_metrics(vocabulary.counts))
    counts = {name: count(rows, name) for name in names}
    counts["reports"] = np.ones(len(rows))
    # ROUGE-L F1 of single reports (Lin 2004); 0 where a text is empty
    counts["rouge_l"] = 2 * counts["lcs"] / np.maximum(counts["words"] + counts["reference_words"], 1)
    return Reports(
        **_in_common(rows, vocabulary),
        channel=strings(rows["channel"]),
        counts=np.stack([counts[name] for name in names], axis=-1),
        parsed=number_of(pc.fill_null(pc.binary_join(rows["parsed"], "\n"), "")),
        gold=_flags(rows["gold"], vocabulary.entities),
        predicted=_flags(rows["parsed"], vocabulary.entities),
        names=names,
        entities=vocabulary.entities,
    )


def items(verdicts: pa.Table, vocabulary: Vocabulary) -> Items:
    """Read the picked answers of a table of verdicts, judged or not, in the order of Items."""
    rows = _rows_of(verdicts, ["answer"])
    options = count(rows, "options").astype(np.int64)
    letters = _letters(strings(rows["subtask"]), options, count(rows, "letters").astype(np.int64))
    return Items(
        **_in_common(rows, vocabulary),
        sequence=strings(rows["sequence"]),
        answer_type=strings(rows["answer_type"]),
        tier=np.asarray(rows["tier"], np.int64),
        options=options,
        gold=_without_gaps(_bits(rows["gold"]), letters),
        parsed=_without_gaps(_bits(rows["parsed"]), letters),
    )


def _rows_of(verdicts: pa.Table, channels: list[str]) -> pa.Table:
    order = [(name, "ascending") for name in ("arm_id", "subtask", "patient_id", "qa_id", "channel")]
    of_channels = verdicts.filter(pc.is_in(verdicts["channel"], value_set=pa.array(channels)))
    return of_channels.sort_by(order).combine_chunks()


def _in_common(rows: pa.Table, vocabulary: Vocabulary) -> dict[str, Any]:
    patients = pa.array(vocabulary.patients, pa.string())
    return {
        "subtask": strings(rows["subtask"]),
        "parse_status": strings(rows["parse_status"]),
        "question": np.asarray(pc.index_in(rows["qa_id"], value_set=vocabulary.questions), np.int64),
        "request": number_of(rows["request_key"]),
        "patient": np.asarray(pc.index_in(rows["patient_id"], value_set=patients), np.int64),
        "judged": np.asarray(pc.equal(rows["status"], "judged"), np.bool_),
    }


def _letters(subtask: NDArray[np.str_], options: Ints, letters: Ints) -> Ints:
    """The letters of the subtask of each row as bits; all letters where they leave no gap."""
    _, code = np.unique(subtask, return_inverse=True)
    of_subtask = np.zeros(int(code.max(initial=-1)) + 1, np.int64)
    np.bitwise_or.at(of_subtask, code, np.where(letters > 0, letters, (1 << options) - 1))
    has_gap = of_subtask & (of_subtask + 1) != 0
    return np.where(has_gap, of_subtask, (1 << len(_KEYS)) - 1)[code]


def _without_gaps(masks: Ints, letters: Ints) -> Ints:
    """Bits by letter as bits by place among the letters of the row."""
    packed, place = np.zeros_like(masks), np.zeros_like(masks)
    for letter in range(len(_KEYS)):
        has_letter = letters >> letter & 1
        packed |= (masks >> letter & has_letter) << place
        place += has_letter
    return packed


def count(rows: pa.Table, name: str) -> Floats:
    """Read one entry of the `counts` of every row; 0 where a row lacks it."""
    entries = pc.map_lookup(rows["counts"].combine_chunks(), name, "first")
    return np.asarray(pc.fill_null(entries, 0.0), np.float64)


def strings(column: pa.ChunkedArray) -> NDArray[np.str_]:
    """A column as NumPy strings, null as the empty one."""
    return np.asarray(pc.fill_null(column, "").combine_chunks().to_numpy(zero_copy_only=False), dtype=np.str_)


def _bits(column: pa.ChunkedArray) -> Ints:
    lists = column.combine_chunks()
    position = pc.index_in(lists.flatten(), value_set=_KEYS)
    assert position.null_count == 0, "an option key that is not a capital letter"
    parent = np.asarray(pc.list_parent_indices(lists))
    # distinct powers of two: their sum is their union
    return np.bincount(parent, weights=2.0 ** np.asarray(position), minlength=len(lists)).astype(np.int64)


def _flags(column: pa.ChunkedArray, names: tuple[str, ...]) -> Bools:
    """Flag which of the names each list holds."""
    lists = column.combine_chunks()
    flags = np.zeros((len(lists), len(names)), np.bool_)
    parent = np.asarray(pc.list_parent_indices(lists))
    flags[parent, np.asarray(pc.index_in(lists.flatten(), value_set=pa.array(names, pa.string())))] = True
    return flags


def number_of(column: pa.ChunkedArray) -> Ints:
    """Hash each string to a 63-bit number; null hashes like the empty string.

    The keys of millions of requests do not fit in memory at once. Only replies to the same question are ever
    compared by it, so 63 bits suffice.
    """
    return np.fromiter(
        (
            int.from_bytes(blake2b((key or "").encode(), digest_size=8).digest(), "little") >> 1
            for key in column.to_pylist()
        ),
        np.int64,
        len(column),
    )


@dataclass(frozen=True, slots=True)
class Answers:
    """Rows of a table of verdicts; `patient` indexes the sorted patients of the whole table."""

    items: Items
    reports: Reports

    @staticmethod
    def of(verdicts: pa.Table, vocabulary: Vocabulary | None = None) -> "Answers":
        """Read all rows of a table; for a part of a table, pass the vocabulary of the whole."""
        vocabulary = vocabulary or Vocabulary.of(Verdicts.of(verdicts))
        return Answers(items(verdicts, vocabulary), reports(verdicts, vocabulary))

    @property
    def judged(self) -> "Answers":
        """The judged rows."""
        return self.where(self.items.judged, self.reports.judged)

    def where(self, items: Bools, reports: Bools) -> "Answers":
        """Some of the items and of the reports."""
        return Answers(self.items.where(items), self.reports.where(reports))

    def common_with(self, other: "Answers", *, out: bool = False) -> "Answers":
        """The rows with a question that occurs in the other answers too, or with `out` all others."""
        return self.among(other.items.question, other.reports.question, out=out)

    def among(self, items: Ints, reports: Ints, *, out: bool = False) -> "Answers":
        """The rows of the given questions, or with `out` of all others."""
        return self.where(
            np.isin(self.items.question, items, invert=out),
            np.isin(self.reports.question, reports, invert=out),
        )

    def joined_with(self, other: "Answers") -> "Answers":
        """Concatenate with the rows of another part of the table; the result is not sorted."""
        return Answers(self.items.joined_with(other.items), self.reports.joined_with(other.reports))

    def of_tier(self, tier: str) -> Items | Reports:
        """The rows behind a statistic of a tier (`tier:1`); of reports, those of fields."""
        if tier == "tier:2":
            return self.reports.of_fields
        return self.items.where(self.items.tier == int(tier[-1]))

    def __len__(self) -> int:
        return len(self.items) + len(self.reports)


@dataclass(frozen=True, slots=True)
class ArmAnswers:
    """The answers of each arm; codes of questions, requests and entity sets are shared across arms."""

    asked: Mapping[str, Answers]  # judged or not
    arms: list[str]  # with a judged row, sorted
    patients: list[str]  # of all arms, sorted
    n_questions: int  # of all arms
    shares: Mapping[tuple[str, str], float]  # of the items that were judged, by arm and scope
    hospitals: Ints | None = None  # codes of the patients' hospitals, where these are random as well

    @staticmethod
    def of(
        verdicts: pa.Table | Verdicts, hospitals: Mapping[str, str] = MappingProxyType({})
    ) -> "ArmAnswers":
        """Read the answers from verdicts, one arm at a time; `hospitals` are those of patients, if known."""
        by_arm = verdicts if isinstance(verdicts, Verdicts) else Verdicts.of(verdicts)
        vocabulary = Vocabulary.of(by_arm)
        asked = SpilledMapping[str, Answers]()
        judged_arms = []
        for arm in by_arm.arms:
            answers = asked[arm] = Answers.of(by_arm.of_arm(arm), vocabulary)
            if answers.items.judged.any() or answers.reports.judged.any():
                judged_arms.append(arm)
        patients, n_questions = vocabulary.patients, len(vocabulary.questions)
        codes = hospital_codes(patients, hospitals)
        return ArmAnswers(asked, sorted(judged_arms), patients, n_questions, judged_shares(by_arm), codes)

    def judged(self, arm: str) -> Answers:
        """The judged rows of an arm."""
        return self.asked[arm].judged
