"""Reasons why a report, a finding or an answer was left out, with their explanations."""

from enum import StrEnum

from cardiolens.curation.masks.labels import MaskReason


class Reason(StrEnum):
    """A code of `rejects.jsonl`."""

    EMPTY = "empty"
    UNREADABLE = "unreadable"
    TOO_LONG = "too_long"
    NO_STUDY = "no_study"
    SEVERAL_REPORTS = "several_reports"
    FRAME_MARK = "frame_mark"
    NO_REPLY = "no_reply"
    NO_JSON = "no_json"
    NOT_QUOTED = "not_quoted"
    NO_SUCH_OPTION = "no_such_option"
    SILENT_SECTION = "silent_section"
    UNCERTAIN = "uncertain"
    NAMES_NO_FINDING = "names_no_finding"
    MODEL_ALONE = "model_alone"
    OTHER_STATE = "other_state"
    NAMED_ONLY = "named_only"
    AMENDED = "amended"
    NOT_TODAY = "not_today"
    OTHER_STRUCTURE = "other_structure"
    NO_OPTION = "no_option"
    BETWEEN_GRADES = "between_grades"
    WITHOUT_GRADE = "without_grade"
    BORDERLINE = "borderline"
    DENIED_IN_PART = "denied_in_part"
    QUALIFIED_DENIAL = "qualified_denial"
    CONTRADICTION = "contradiction"
    SEVERAL_VALUES = "several_values"
    NUMBER_AGAINST_WORDS = "number_against_words"
    SEVERAL_NUMBERS = "several_numbers"
    PART_NOT_TOLD = "part_not_told"
    INCOMPLETE_PLACES = "incomplete_places"
    UNANCHORED = "unanchored"
    PARENT_UNKNOWN = "parent_unknown"
    AGAINST_TRUTH = "against_truth"
    EXTRACTORS_DISAGREE = "extractors_disagree"
    NO_SEQUENCE = "no_sequence"
    LEAKS = "leaks"
    ANSWERED_BLIND = "answered_blind"
    NO_MASK = "no_mask"
    MASK_UNFIT = "mask_unfit"


MEANINGS: dict[Reason, str] = {
    Reason.EMPTY: "the report has no text",
    Reason.UNREADABLE: "the file is no UTF-8 text",
    Reason.TOO_LONG: "the report is longer than any that is read",
    Reason.NO_STUDY: "no study belongs to the report",
    Reason.SEVERAL_REPORTS: "several reports belong to one study, and which of them holds is not known",
    Reason.FRAME_MARK: "the text holds U+FFFC, which is kept for frames",
    Reason.NO_REPLY: "the model gave no reply",
    Reason.NO_JSON: "the model's reply is not the JSON that was asked for",
    Reason.NOT_QUOTED: "the evidence does not occur in the report, word for word",
    Reason.NO_SUCH_OPTION: "the finding names a field, value or certainty that does not exist",
    Reason.SILENT_SECTION: "the evidence stands where a report asks a question or describes the past",
    Reason.UNCERTAIN: "the report is not sure of it",
    Reason.NAMES_NO_FINDING: "the evidence does not name the finding, or says nothing of it",
    Reason.MODEL_ALONE: "only the model reads it, and the model has not passed the gate",
    Reason.OTHER_STATE: "it is of the heart under stress, in systole, or before contrast",
    Reason.NAMED_ONLY: "the finding is named, and nothing is said of it",
    Reason.AMENDED: "an addendum or a correction of the report may change it",
    Reason.NOT_TODAY: "the report says it about the past, or asks for it",
    Reason.OTHER_STRUCTURE: "it may be of another structure than the myocardium",
    Reason.NO_OPTION: "the words state none of the options",
    Reason.BETWEEN_GRADES: "it stands between two options",
    Reason.WITHOUT_GRADE: "the words name no grade",
    Reason.BORDERLINE: "the words call it borderline",
    Reason.DENIED_IN_PART: "it is denied of a part only",
    Reason.QUALIFIED_DENIAL: "only a kind of it is denied",
    Reason.CONTRADICTION: "the report says both that it is normal and that it is not",
    Reason.SEVERAL_VALUES: "the report gives several values where one is right",
    Reason.NUMBER_AGAINST_WORDS: "a number contradicts the words",
    Reason.SEVERAL_NUMBERS: "several numbers stand for one quantity",
    Reason.PART_NOT_TOLD: "a structure that the question asks about is not mentioned",
    Reason.INCOMPLETE_PLACES: "only some of the findings have places",
    Reason.UNANCHORED: "a place or a pattern stands in a sentence without its finding",
    Reason.PARENT_UNKNOWN: "the question that it depends on has no answer",
    Reason.AGAINST_TRUTH: "another statement of the report, or of report and mask, speaks against it",
    Reason.EXTRACTORS_DISAGREE: "the two extractors read different answers",
    Reason.NO_SEQUENCE: "the study has no such images",
    Reason.LEAKS: "the name of the study reveals the answer",
    Reason.ANSWERED_BLIND: "all probes answer it in every order without an image",
    Reason.NO_MASK: "the study has no short-axis mask of a sequence that the label map is for",
    Reason.MASK_UNFIT: "the mask contradicts its label map, its images or study.json",
}


def meaning_of(code: str) -> str:
    """Return the explanation of a reason code of reports or masks."""
    of_masks = {str(reason): reason.meaning for reason in MaskReason}
    return (of_masks | {str(reason): meaning for reason, meaning in MEANINGS.items()})[code]
