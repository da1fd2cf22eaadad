"""The reply that stands for several to one question: one of those that name what most of them name."""

from collections import Counter
from collections.abc import Sequence

from cardiolens.score.verdicts.case import Case, CaseReply, read_choice


def elect_reply(case: Case, replies: Sequence[CaseReply]) -> CaseReply:
    """The earliest reply of those with the most frequent set of options; the first where none can be read.

    Of sets that are equally frequent, the one that was named first. A reply that cannot be read has no vote.
    """
    key_sets = [frozenset(read_choice(case, reply).keys) for reply in replies]
    votes = Counter(keys for keys in key_sets if keys)
    if not votes:
        return replies[0]
    (most, _), *_ = votes.most_common()  # of equals the one that was counted first
    return replies[key_sets.index(most)]
