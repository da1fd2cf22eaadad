"""The Arrow schemas of the fourteen tables; every step of the flow reads and writes these and nothing else.

A column's comment says its meaning and unit; docs/reference/tables.md lists them.
"""

import pyarrow as pa

SCHEMA_VERSION = "1"

FRAME = "\ufffc"  # marks the place of a frame in a message; marks side by side are the place of a video

# The status of a request as planned, and the statuses of a completion that end a request.
PLANNED = "planned"
OVERFLOW = "overflow"
ILLEGAL_SELECTION = "illegal_selection"  # a reader that chooses asked for no frame that there is
FINAL = ("ok", "refused", ILLEGAL_SELECTION)

# Parse statuses of second turns, and all of replies that were read.
ASKED_BACK = "asked_back"  # the model gave its letters when its first reply was quoted to it
NO_ANSWER = "no_answer"  # it said that its first reply gives no answer
READ = ("ok", ASKED_BACK, "inconsistent")


def _schema(name: str, *fields: tuple[str, pa.DataType]) -> pa.Schema:
    return pa.schema(list(fields), metadata={"table": name, "version": SCHEMA_VERSION})


_STRINGS = pa.list_(pa.string())
_INSTANT = pa.timestamp("us", tz="UTC")

VOLUMES = _schema(
    "volumes",
    ("study_id", pa.string()),
    ("patient_id", pa.string()),
    ("cohort", _STRINGS),
    ("species", pa.string()),
    ("volume_id", pa.string()),
    ("sequence", pa.string()),
    ("view", pa.string()),
    ("n_slices", pa.int32()),
    ("n_phases", pa.int32()),
    ("height", pa.int32()),  # of a displayed frame, pixels
    ("width", pa.int32()),
    ("spacing_mm", pa.list_(pa.float64())),  # of the stored volume: i, j, slice
    ("spatial_order", pa.string()),  # as stored; ranks in `frames` are canonical
    ("key_layers", pa.list_(pa.int32())),  # canonical ranks: basal, mid, apical; fewer if fewer slices
    ("ed_phase", pa.int32()),
    ("es_phase", pa.int32()),
    ("t_on", pa.int32()),  # perfusion only, else null
    ("t_peak", pa.int32()),
    ("window_low", pa.float64()),  # intensity shown as 0 and as 255
    ("window_high", pa.float64()),
    ("source_sha256", pa.string()),  # of the NIfTI file
    ("part", pa.string()),  # file name of the frames part that holds the volume
    ("row_group", pa.int32()),  # of that part
)

FRAMES = _schema(
    "frames",
    ("study_id", pa.string()),
    ("volume_id", pa.string()),
    ("idx", pa.int32()),  # canonical index = slice * n_phases + phase
    ("slice", pa.int32()),  # canonical rank, 0 = most basal
    ("phase", pa.int32()),
    ("height", pa.int32()),
    ("width", pa.int32()),
    ("channels", pa.int32()),
    ("pixels", pa.binary()),  # uint8, row by row as displayed
    ("digest", pa.string()),  # of shape and pixels
)

OPTION = pa.struct([("key", pa.string()), ("text", pa.string())])

QUESTIONS = _schema(
    "questions",
    ("qa_id", pa.string()),
    ("study_id", pa.string()),
    ("patient_id", pa.string()),
    ("tier", pa.int32()),
    ("subtask", pa.string()),
    ("sequence", pa.string()),
    ("question", pa.string()),
    ("answer_type", pa.string()),  # single | ordinal | multi | report
    ("options", pa.list_(OPTION)),
    ("exclusive", _STRINGS),
    ("answer", _STRINGS),  # none of a report
    ("reference", pa.string()),  # JSON of a report's {fields, findings, impression}, else null
    ("parent", pa.string()),
    ("origin", pa.string()),
    ("protocol", pa.string()),
)

QUOTE = pa.struct([("text", pa.string()), ("section", pa.string())])  # section: "" where it is not known

EVIDENCE_SLICE = pa.struct(
    [("volume_id", pa.string()), ("slice", pa.int32()), ("phases", pa.list_(pa.int32()))]
)

EVIDENCE = _schema(
    "evidence",
    ("qa_id", pa.string()),
    ("study_id", pa.string()),
    ("origin", pa.string()),  # report | mask | reader | phantom
    ("quotes", pa.list_(QUOTE)),  # of the report, on which the answer rests
    ("verification", pa.string()),  # JSON, as the question's record has it
    ("slices", pa.list_(EVIDENCE_SLICE)),  # where the answer is seen; phases: none means any
)

FRAME_REF = pa.struct([("volume_id", pa.string()), ("idx", pa.int32())])

REQUESTS = _schema(
    "requests",
    ("arm_id", pa.string()),
    ("qa_id", pa.string()),
    ("study_id", pa.string()),
    ("frames_study_id", pa.string()),  # another patient's in a control; null without frames
    ("subtask", pa.string()),
    ("frames", pa.list_(FRAME_REF)),  # in the order shown
    ("system", pa.string()),
    ("prompt", pa.string()),  # user message; U+FFFC marks the place of each frame; side by side: of a video
    ("template", pa.string()),  # id@hash of the prompt template
    ("answer_format", pa.string()),  # letters | json | choice | last_line
    ("answer_type", pa.string()),
    ("option_keys", _STRINGS),  # as displayed: the option permutation
    ("exclusive", _STRINGS),
    ("max_tokens", pa.int32()),
    ("stage", pa.int32()),
    ("replicate", pa.int32()),
    (
        "flags",  # short, degraded, substituted:<view>, no_temporal_evidence, estimated_tokens, blank,
        _STRINGS,
    ),  # shots:<examples>, video:<videos>
    ("status", pa.string()),  # planned | overflow | skipped: <why>
    ("predicted_tokens", pa.int32()),
    ("request_key", pa.string()),
)

EXAMPLES = _schema(
    "examples",
    ("request_key", pa.string()),  # of the row in `requests` whose prompt begins with the examples
    ("example", pa.int32()),  # from 0, in the order shown
    ("qa_id", pa.string()),  # of the solved question
    ("study_id", pa.string()),  # of another patient
    ("frames", pa.list_(FRAME_REF)),  # of that study, shown before those of the request
)

STAGES = _schema(
    "stages",
    ("request_key", pa.string()),  # of the chain's row in `requests`
    ("stage", pa.int32()),  # from 0; all of a chain stand here, the last one too
    ("prompt", pa.string()),  # with marks where earlier replies will stand
    ("max_tokens", pa.int32()),
    ("stage_key", pa.string()),  # of stage 0 and of samples its request_key; of a later one it goes into it
    ("seed", pa.int64()),  # of a sample, with which it is drawn; null in other chains
    ("temperature", pa.float64()),  # of a sample; null in other chains
)

OFFERED_FRAME = pa.struct(
    [("name", pa.string()), ("volume_id", pa.string()), ("idx", pa.int32()), ("caption", pa.string())]
)

OFFERS = _schema(
    "offers",
    ("offer_key", pa.string()),  # digest of the frames on offer
    ("frames", pa.list_(OFFERED_FRAME)),  # that a reader may ask for, in the order in which they are shown
)

CHOICES = _schema(
    "choices",
    ("request_key", pa.string()),  # of the chain's row in `requests`
    ("offer_key", pa.string()),  # of its offer
    ("budget", pa.int32()),  # most frames that are shown
    ("rounds", pa.int32()),  # most requests for frames
    ("first", pa.string()),  # prompt of the first request for frames; all prompts have marks
    ("further", pa.string()),  # of a later one, after the frames shown by then
    ("answer_one", pa.string()),  # the question, after one frame
    ("answer_many", pa.string()),  # the same after several
    ("ask_max_tokens", pa.int32()),  # of a reply that names frames
    ("max_tokens", pa.int32()),  # of the answer
    ("bound", pa.bool_()),  # whether decoding enforces legal names
    ("stage_key", pa.string()),  # goes into the request_key of every stage
)

SEEN = _schema(
    "seen",
    ("request_key", pa.string()),  # of the chain's row in `requests`
    ("stage", pa.int32()),  # from 0
    ("step_key", pa.string()),  # request_key of the stage
    ("frames", pa.list_(FRAME_REF)),  # in the order shown; null: those of the chain's row
    ("prompt", pa.string()),  # as it was sent
    ("reply", pa.string()),  # null where there is none yet
    ("not_shown", pa.int32()),  # names in the reply that were no frame to show; null in other stages
    ("status", pa.string()),  # of the completion, null where there is none yet; asked_back: a second turn
)

COMPLETIONS = _schema(
    "completions",
    ("request_key", pa.string()),
    ("text", pa.string()),  # of the reply; of several samples one line of JSON each
    ("reasoning", pa.string()),  # before the reply, where the engine separates it; else null
    ("finish_reason", pa.string()),  # stop, length, the engine's own word; samples: of several
    ("option_logprobs", pa.map_(pa.string(), pa.float64())),  # by letter displayed; explanation/statistics.md
    ("prompt_tokens", pa.int32()),
    ("cached_tokens", pa.int32()),
    ("output_tokens", pa.int32()),
    ("seconds", pa.float64()),
    ("node", pa.string()),
    ("engine", pa.string()),  # with its version; null where unknown, as the next three
    ("device", pa.string()),  # type of the GPUs, or cpu
    ("attention_backend", pa.string()),  # as vLLM names it
    ("tensor_parallel", pa.int32()),  # GPUs that one replica computes on together
    ("attempt", pa.int32()),
    ("status", pa.string()),  # ok | refused | illegal_selection | engine_error
    ("error", pa.string()),
    ("written_at", _INSTANT),
)

VERDICTS = _schema(
    "verdicts",
    ("arm_id", pa.string()),
    ("qa_id", pa.string()),
    ("channel", pa.string()),  # answer | fields | text
    ("study_id", pa.string()),
    ("patient_id", pa.string()),
    ("tier", pa.int32()),
    ("sequence", pa.string()),
    ("subtask", pa.string()),
    ("answer_type", pa.string()),
    ("request_key", pa.string()),
    ("status", pa.string()),  # judged | overflow | skipped: <why> | engine_error | missing
    ("parse_status", pa.string()),  # null unless judged; ok, asked_back, no_answer, refusal, truncated ...
    ("rule", pa.string()),  # the parsing rule that found the answer; asked_back; illegal_selection
    ("parsed", _STRINGS),
    ("gold", _STRINGS),
    ("correct", pa.bool_()),
    ("counts", pa.map_(pa.string(), pa.float64())),  # tp, fp, fn, rank_error, ...
)

SCORES = _schema(
    "scores",
    ("metric", pa.string()),
    ("scope", pa.string()),  # tier:1 | sequence:cine | subtask:C10
    ("arm_id", pa.string()),  # of an arm, or headline:<model>
    ("value", pa.float64()),  # percent; NaN where undefined
    ("low", pa.float64()),
    ("high", pa.float64()),
    ("n_items", pa.int32()),
    ("n_patients", pa.int32()),
    ("n_parse_error", pa.int32()),
    ("n_refusal", pa.int32()),
    ("n_positive", pa.int32()),  # items of the one of two classes; null where none are distinguished
    ("n_rarer_class", pa.int32()),  # patients of the rarer class
    ("percent_judged", pa.float64()),  # of the items asked; null where the score is complete
    ("method", pa.string()),
)

COMPARISONS = _schema(
    "comparisons",
    ("factor", pa.string()),  # what differs: selector | budget | prompt | control | model | tier | ...
    ("level", pa.string()),  # of the factor, minus `versus`
    ("versus", pa.string()),
    ("model", pa.string()),  # in which they are compared; null: over all models, or between models
    ("metric", pa.string()),
    ("tier", pa.int32()),
    ("arm_id", pa.string()),  # of two arms; null for means over arms
    ("versus_arm_id", pa.string()),
    ("difference", pa.float64()),  # points, or the metric's unit; NaN where undefined
    ("low", pa.float64()),
    ("high", pa.float64()),
    ("low_90", pa.float64()),  # of the score: lower end of the 90 % interval
    ("high_90", pa.float64()),
    ("p", pa.float64()),  # two-sided
    ("p_adjusted", pa.float64()),
    ("within_p", pa.float64()),  # of the null that the difference is larger than the margin
    ("within_p_adjusted", pa.float64()),
    ("beyond_p", pa.float64()),  # of the null that it lies within the margin
    ("beyond_p_adjusted", pa.float64()),
    ("adjustment", pa.string()),  # holm | fdr (explored, nothing is claimed) | alone; null: not tested
    ("family", pa.string()),  # of tests that are adjusted together
    ("family_size", pa.int32()),
    ("decision", pa.string()),  # higher | lower | explored | open
    ("margin", pa.string()),  # within | beyond; null: neither
    ("n_patients", pa.int32()),
    ("n_items", pa.int32()),
    ("n_same_request", pa.int32()),
    ("n_dropped", pa.int32()),  # items that fell out or were not read; null: none
    ("low_bound", pa.float64()),  # had these items been what lowers the difference
    ("high_bound", pa.float64()),
    ("is_incomplete", pa.bool_()),  # whether more than 1 % of the items fell out
    ("differing_low_90", pa.float64()),  # over items whose requests differ
    ("differing_high_90", pa.float64()),
    ("read_difference", pa.float64()),  # over items read on both sides; null: all were read
    ("n_read", pa.int32()),
    ("n_unread", pa.int32()),
    ("n_unread_versus", pa.int32()),
    ("n_models", pa.int32()),  # of a mean over models
    ("n_models_above", pa.int32()),  # whose own difference is above zero
    ("n_settings", pa.int32()),  # of the other factors
    ("spread", pa.float64()),  # standard deviation between models
    ("spread_low", pa.float64()),
    ("spread_high", pa.float64()),
    ("next_low", pa.float64()),  # where a next model is expected
    ("next_high", pa.float64()),
    ("simulated", pa.bool_()),  # of simulated readers: it enters no finding on models
    ("method", pa.string()),
)
