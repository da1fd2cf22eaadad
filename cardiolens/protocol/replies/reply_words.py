r"""The words of the strict reader: regular expressions without regard to case, matched after NFKC."""

# What opens and closes text that is no answer: reasoning, calls of tools, programs. An unclosed block goes to
# the end; a close without an open ends a block that the prompt opened.
_THOUGHT = r"think|thinking|thought|thoughts|reasoning|reflection|scratchpad|analysis|rationale"
_CALL = r"tool_calls?|tool_response|tool_result|function_calls?|invoke"
_FORMAT = r"example|format|template|schema|instructions?"
HIDDEN = (
    (rf"<(?:\w+[:|])?(?:{_THOUGHT})(?:[_:]\w+)?>", rf"</(?:\w+[:|])?(?:{_THOUGHT})(?:[_:]\w+)?>"),
    (r"\[think\]", r"\[/think\]"),
    (r"◁think▷", r"◁/think▷"),
    (r"<unused94>", r"<unused95>"),
    (r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>"),
    (r"<\|start_thinking\|>", r"<\|end_thinking\|>"),
    (r"<\|channel>(?!\s*final)", r"<channel\|>"),
    (
        r"<\|channel\|>\s*(?:analysis|commentary)",
        r"<\|channel\|>\s*final[^<\n]*(?:<\|constrain\|>[^<\n]*)?<\|message\|>",
    ),
    (r"\A\s*analysis(?=[A-Z])", r"assistantfinal"),
    (rf"<(?:{_CALL})>", rf"</(?:{_CALL})>"),
    (rf"<(?:{_FORMAT})>", rf"</(?:{_FORMAT})>"),
)

# Where a model goes on with the turn of somebody else. With regard to case.
NEXT_TURN = (
    r"<[|｜](?:endoftext|im_end|eot_id|end_of_text|end.of.sentence)[|｜]>|<eos>|<end_of_turn>|</s>"
    r"|\n[ \t]*(?:User|Human|Next question|Question(?: \d+)?)\s*:"
)

# Tags around the answer itself.
ANSWER_TAGS = (
    "answer|final_answer|finalanswer|final|ans|response|result|solution|choice|selection|correct_answer"
    "|conclusion"
)

# What may stand before the noun of an answer, at the beginning of a sentence.
OPENINGS = (
    r"so|thus|therefore|hence|overall|finally|in (?:conclusion|summary)"
    r"|(?:based on|given|from|considering) [^,.:;!?\n]{1,80}"
)

# Nouns that introduce an answer before a colon, or before "is".
_BEST = "correct|final|best|right|likely|appropriate"
NOUNS = "|".join(
    (
        rf"(?:the |my )?(?:(?:single |most )?(?:{_BEST}|accurate) )*answers?"
        r"(?: (?:choices?|letters?|options?))?(?:\(s\))?",
        rf"(?:the |my )?(?:(?:single |most )?(?:{_BEST}|chosen|selected) )+"
        r"(?:options?|choices?|letters?|responses?)",
        r"(?:final )?response|my (?:choice|response)",
        r"(?:die |meine )?(?:(?:richtigen?|endgültige|korrekte) )?antwort(?:en)?",
        r"(?:正确|最终|最佳|所以|因此|故)*(?:答案|答)|正确选项",
        r"(?:la |ma )?(?:bonne )?réponse(?: finale| correcte)?",
        r"(?:la )?respuesta(?: correcta| final)?",
        r"정답은?|답은?",
        r"正解|答え|回答",
    )
)
# One of these is in each noun.
NOUN_STEMS = (
    *("answer", "option", "choice", "letter", "response", "antwort", "réponse", "respuesta"),
    *("答", "选项", "正解", "답"),
)
IS = (
    r"(?:is|are)(?: most likely| likely| probably| therefore| thus)?\b"
    r"|ist|sind|lautet|lauten|est|es|son|[是为為]|は"
)

# Keys of a JSON reply that hold its answer; in small letters, without "_", "-" and spaces.
JSON_KEYS = (
    "answers?|finalanswers?|correctanswers?|choices?|selected|selection|selectedoptions?|correctoptions?"
    "|antwort(?:en)?|答案|最终答案"
)

# Join the entries of a list, beside comma, semicolon and line breaks.
JOINS = "and|plus|as well as|und|sowie|et|y|[和及与]|以及"

# Say nothing before an entry of a list.
LABELS = "options?|letters?|choices?|the|both|optionen|buchstaben?|选项"

# Begin a reason behind a complete answer.
REASONS = "because|since|as|due to|given|based on|which|weil|da|aufgrund|因为|由于"

# Behind an answer, these may take it back; the answer is then not read.
DOUBTS = (
    "wait|actually|hmm+|hold on|on (?:second|further|reflection|closer)|second thoughts?|correction|corrected"
    r"|scratch|strike|cancel|disregard|ignore|never ?mind|forget (?:that|it)|sorry|apolog\w+|oops|mistake\w*"
    r"|mis(?:read|count|judg|label|interpret)\w*|typo|wrong|incorrect|error|chang\w+|revis\w+|reconsider\w*"
    r"|re-?(?:check|examin|evaluat|assess|think|read|view|count|measur)\w*|double[- ]check\w*|instead"
    r"|alternative\w*|however|but|although|though|(?:or|then) (?:maybe|perhaps|again|rather)|maybe|perhaps"
    "|possibly|not sure|unsure|uncertain|torn|can(?:no|')t (?:decide|say|tell|be)|edit|update"
    r"|i (?:mean|meant)|no,|no\.|nope|if|unless|would|moment|nein|doch|korrektur|korrigier\w*|revidier\w*"
    r"|verwechsel\w*|等等|不对|更正|改为|改成|其实|重新|但"
)

# A reply that declines to answer.
_SEE = "answer|assess|assist|determine|diagnose|evaluate|help|interpret|judge|provide|view|see"
_SEEN = "answered|assessed|chosen|decided|determined|diagnosed|evaluated|graded|judged"
REFUSALS = "|".join(
    (
        r"\b(?:i|we)(?:'m| am| are|'re)? (?:sorry|apologi[sz]e)\b",
        r"\b(?:i|we) (?:cannot|can't|can not|could not|couldn't|won't|will not|am unable|are unable"
        r"|am not able|are not able|must decline|decline)\b",
        r"\b(?:i|we)'(?:m|re) (?:unable|not able|not (?:a doctor|qualified|allowed|permitted))\b",
        rf"\b(?:unable|not able|impossible) to (?:{_SEE})\b",
        r"\bas an ai\b",
        rf"\b(?:cannot|can't|can not|could not|couldn't) (?:\w+ )?be (?:\w+ly )?(?:{_SEEN})\b",
        r"\bconsult (?:a|your|with a) (?:qualified |medical |healthcare )?"
        r"(?:doctor|physician|professional|radiologist|cardiologist)\b",
        r"\bich kann (?:\w+ ){0,6}nicht\b|\bes tut mir leid\b|抱歉|对不起|無法|无法"
        "|不能(?:回答|提供|判断|诊断|确定)",
    )
)
