"""Majority vote over several replies to one question."""

from collections import Counter
from collections.abc import Sequence

from cardiolens.score.verdicts.case_verdict import Case, CaseReply, read_choice


def elect_reply(case: Case, replies: Sequence[CaseReply]) -> CaseReply:
    """The earliest reply with the most frequent set of options; the first reply if none can be read.

    Ties go to the set that was named first. An unreadable reply has no vote.
    """
    key_sets = [frozenset(read_choice(case, reply).keys) for reply in replies]
    votes = Counter(keys for keys in key_sets if keys)
    if not votes:
        return replies[0]
    (most, _), *_ = votes.most_common()  # ties go to the set counted first
    return replies[key_sets.index(most)]
