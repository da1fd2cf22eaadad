"""Reads one reply to a choice question, strictly: a marked final answer, or nothing but an answer.

    reading = read_reply(text, options, several=True, finish_reason="stop")
    reading.status   # read | refused | cut | contradicted | unread
    reading.answers  # letters of `options`, in their order; empty unless the status is `read`
    reading.rule     # how the answer was found, e.g. answer_line; none without one

`options` are (letter, text) as the prompt shows them. Letters are those of the catalogue (Z may be "None"),
and answers come back in them. `several` says whether the question takes more than one option. An option that
excludes the others is read beside them as it stands. The form that the prompt asks for is no argument: an
answer line, JSON, bare letters and letters before `Reason:` differ by themselves, and an answer in another
form than asked is read alike.

read          one answer, and nothing after it speaks of another
refused       no answer, and the reply declines to give one
cut           `finish_reason` is `length`, and no complete mark stands before the end
contradicted  two marks differ, or what follows an answer takes it back or speaks of another option
unread        everything else: prose, letters of no option, several for a question that takes one

A refusal by the host has no text and is not read here. `visible_text` is what counts of a reply; it is empty
where reasoning was never closed. RULES_VERSION is raised with every change that may read a reply differently.
"""

from cardiolens.protocol.replies.marks import objects, refuses, visible_text
from cardiolens.protocol.replies.strict_reading import RULES_VERSION, Option, Reading, Status, read_reply

__all__ = ["RULES_VERSION", "Option", "Reading", "Status", "objects", "read_reply", "refuses", "visible_text"]
