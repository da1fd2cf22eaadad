"""Reasons why a report, a finding or an answer was left out, with their explanations."""

from cardiolens.base.phrasing import NameWithMeaning
from cardiolens.curation.masks.labels import MaskReason


class Reason(NameWithMeaning):
    """A code of `rejects.jsonl`, and its meaning."""

    EMPTY = "empty", "the report has no text"
    UNREADABLE = "unreadable", "the file is no UTF-8 text"
    TOO_LONG = "too_long", "the report is longer than any that is read"
    NO_STUDY = "no_study", "the names of the report lead to no study, or to several"
    SEVERAL_REPORTS = (
        "several_reports",
        "several reports belong to one study, and which of them holds is not known",
    )
    FRAME_MARK = "frame_mark", "the text holds U+FFFC, which is kept for frames"
    NO_REPLY = "no_reply", "the model gave no reply"
    NO_JSON = "no_json", "the model's reply is not the JSON that was asked for"
    NOT_QUOTED = "not_quoted", "the evidence does not occur in the report, word for word"
    NO_SUCH_OPTION = "no_such_option", "the finding names a field, value or certainty that does not exist"
    SILENT_SECTION = (
        "silent_section",
        "the evidence stands where a report asks a question or describes the past",
    )
    UNCERTAIN = "uncertain", "the report is not sure of it"
    NAMES_NO_FINDING = "names_no_finding", "the evidence does not name the finding, or says nothing of it"
    MODEL_ALONE = "model_alone", "only the model reads it, and the model has not passed the gate"
    OTHER_STATE = "other_state", "it is of the heart under stress, in systole, or before contrast"
    NAMED_ONLY = "named_only", "the finding is named, and nothing is said of it"
    AMENDED = "amended", "an addendum or a correction of the report may change it"
    NOT_TODAY = "not_today", "the report says it about the past, or asks for it"
    OTHER_STRUCTURE = "other_structure", "it may be of another structure than the myocardium"
    NO_OPTION = "no_option", "the words state none of the options"
    BETWEEN_GRADES = "between_grades", "it stands between two options"
    WITHOUT_GRADE = "without_grade", "the words name no grade"
    BORDERLINE = "borderline", "the words call it borderline"
    DENIED_IN_PART = "denied_in_part", "it is denied of a part only"
    QUALIFIED_DENIAL = "qualified_denial", "only a kind of it is denied"
    CONTRADICTION = "contradiction", "the report says both that it is normal and that it is not"
    SEVERAL_VALUES = "several_values", "the report gives several values where one is right"
    NUMBER_AGAINST_WORDS = "number_against_words", "a number contradicts the words"
    SEVERAL_NUMBERS = "several_numbers", "several numbers stand for one quantity"
    PART_NOT_TOLD = "part_not_told", "a structure that the question asks about is not mentioned"
    INCOMPLETE_PLACES = "incomplete_places", "only some of the findings have places"
    UNANCHORED = "unanchored", "a place or a pattern stands in a sentence without its finding"
    PARENT_UNKNOWN = "parent_unknown", "the question that it depends on has no answer"
    AGAINST_TRUTH = (
        "against_truth",
        "another statement of the report, or of report and mask, speaks against it",
    )
    EXTRACTORS_DISAGREE = "extractors_disagree", "the two extractors read different answers"
    NO_SEQUENCE = "no_sequence", "the study has no such images"
    LEAKS = "leaks", "the name of the study reveals the answer"
    ANSWERED_BLIND = "answered_blind", "all probes answer it in every order without an image"
    NO_MASK = "no_mask", "the study has no short-axis mask of a sequence that the label map is for"
    MASK_UNFIT = "mask_unfit", "the mask contradicts its label map, its images or study.json"


def meaning_of(code: str) -> str:
    """Return the explanation of a reason code of reports or masks."""
    meanings: dict[str, str] = {str(reason): reason.meaning for reason in (*MaskReason, *Reason)}
    return meanings[code]
