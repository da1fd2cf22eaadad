"""Replies as models of 2026 write them: how many are read wrong, and how many are not read."""

from collections import Counter

import pytest

from bench.replies import HALVES, outcome, written_replies
from cardiolens.score.verdicts.parse import parse_answer
from cardiolens.score.verdicts.reply import without_thought

UNREAD = {"hostile": 0.1, "fourth": 0.09, "weak": 0.08, "weak_closed": 0.16, "twelfth": 0.08}
WRONG = {"thin": 0.015}  # shares; written to be misread, as are those with many unread
LEVELS = tuple(
    zip("ABCDE", ("Basal segment", "Mid segment", "Apical segment", "Apex", "Papillary muscle"), strict=True)
)
GRADES = (("A", "Normal"), ("B", "Mildly reduced"), ("C", "Moderately reduced"), ("D", "Severely reduced"))


@pytest.mark.full
@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("blind", [False, True])
def test_few_replies_are_read_wrong_and_few_are_not_read(half: str, blind: bool) -> None:
    count = Counter(outcome(reply, blind=blind) for reply in written_replies(half))
    assert count.total() > 60
    most = WRONG.get(half, 0.005)
    assert count["wrong"] <= most * count.total() or (blind and count["wrong"] <= 8 * most * count.total())
    assert count["unread"] <= UNREAD.get(half, 0.06) * count.total() or blind


@pytest.mark.parametrize(
    "text",
    ["ANSWER: B\n\nANSWER: D", "ANSWER: B\n\nThe correct answer is D.", "ANSWER: B\n\nAlternatively, D."],
)
def test_two_answers_without_order_are_inconsistent(text: str) -> None:
    parsed = parse_answer(text, GRADES, "ordinal")
    assert (parsed.keys, parsed.status) == ((), "inconsistent")


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("ANSWER: A, B, C\n\nRemove C; that is the blood pool.", "AB"),
        ("ANSWER: A, B\n\nAlso C, which I forgot.", "ABC"),
        ("ANSWER: A, B, C\n\nCorrection: replace C with D.", "ABD"),
        ("ANSWER: A, B\n\nOn review, C is negative as well as D.", ""),
        ("LGE+: A, B\nLGE-: C, D, E", "AB"),
        ("Type one: A, B\nType two: C, D", ""),
        ("A (+), B (+), C (-), D (-), E (-)", "AB"),
        ("A (5% confident), B (90% confident), C (5% confident)", ""),
        ('{"final": {"letters": ["B"]}, "draft": {"letters": ["B", "C"]}}', "B"),
        ("All levels except C and D", "ABE"),
        ("All levels are normal except C", "C"),
        ("ANSWER: A, C\n\nSorry: C should be D.", "AD"),
        ("ANSWER: A, B\n\nI take back B.", "A"),
        ("ANSWER: C\n\n(D) and (B) don't enhance.", "C"),
        ("Use this format: ANSWER: A, B", ""),
        ("I reply as ANSWER: A, B for example.", ""),
        ("1. A, B\n2. C", ""),
        ('[{"option": "A", "present": false}, {"option": "D", "present": true}]', "D"),
        ("- (x) Mid segment\n- (x) Apex\n- ( ) Basal segment", "BD"),
        (
            "Basal segment, apex and papillary muscle are spared. Mid and apical segments enhance.",
            "BC",
        ),
        ("ANSWER: A, B\nC: the signal is that of the cavity.", "AB"),
        ("ANSWER: A-C", "ABC"),
        ("ANSWER: not A-C", ""),
        ("Choose among A-D.", ""),
        ("[x] A  [ ] B  [x] C  [ ] D  [ ] E", "AC"),
        ("The mid segment shows enhancement; the apex does not.", "B"),
        ("- Basal segment: enhancement\n- Apex: enhancement", "AD"),
        ("LGE everywhere but in B and C.", ""),
        ("ANSWER: A, B\nExcluded: C (artefact), D (nulled), E", "AB"),
        ("ANSWER: A, B\n\nB is wrong.", ""),
        ("ANSWER: c\nb, etc.", ""),
        ("A and B as opposed to C and D.", "AB"),
    ],
)
def test_edits_signs_and_drafts(text: str, keys: str) -> None:
    assert "".join(parse_answer(text, LEVELS, "multi").keys) == keys


def test_a_dark_wall_is_a_defect_where_perfusion_is_asked_for() -> None:
    text, question = "A: bright\nB: dark\nC: bright", "At which levels is there a perfusion defect?"
    levels = (("A", "Basal"), ("B", "Mid"), ("C", "Apical"))
    assert parse_answer(text, levels, "multi", question=question).keys == ("B",)
    assert parse_answer(text, levels, "multi", question="Which levels enhance?").keys == ("A", "C")


@pytest.mark.parametrize(
    ("text", "key"), [("No LGE in any segment.", "A"), ("Yes.", "B"), ("There is LGE.", "B")]
)
def test_a_question_of_presence_is_answered_by_its_noun(text: str, key: str) -> None:
    presence, question = (("A", "Absent"), ("B", "Present")), "Is there late gadolinium enhancement?"
    assert parse_answer(text, presence, "single", question=question).keys == (key,)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("B. The function is reduced. A would need an EF above 55 %, and C one below 40 %.", "B"),
        ("ANSWER: B\n\nC may be the better answer.", ""),
        ("The answer is B, though A cannot be ruled out.", "B"),
        ("ANSWER: B\n\nThe answer would be C if the EF were lower.", "B"),
        ("I first thought B, but C is right.", "C"),
        ("ANSWER: B\nScratch that, C.", "C"),
        ("First answer: B. Second look: C. Final: C.", "C"),
        ("I would go for B over C.", "B"),
        ("ANSWER: B (confidence 85%)", "B"),
        ("Midly reduced", "B"),
        ("Modestly reduced", ""),
        ("Not A. Not B. Not D.", "C"),
        ("Not A. Not B.", ""),
        ("It is neither normal (A) nor moderately reduced (C) nor severely reduced (D).", "B"),
        ("A and B are wrong. D too.", ""),
        ("70% B, 20% C, 10% A", "B"),
        ("40% B, 35% C, 25% A", ""),
        ("C > D > B", "C"),
        ("Why not D? The EF is 35 %. C.", "C"),
        ("I cannot decide. I considered C and D. D.", ""),
        ("EF is around 50 %, so it is mildly reduced → B.", "B"),
        ("ANSWER: A\nCould it be B? No.", "A"),
        ("ANSWER: A\nShouldn't it be B? Yes.", ""),
        ("Between C and D, I prefer C.", "C"),
    ],
)
def test_what_is_weighed_beside_an_answer_is_none(text: str, key: str) -> None:
    assert "".join(parse_answer(text, GRADES, "ordinal").keys) == key


@pytest.mark.parametrize("name", ["think", "seed:think", "mm:think", "ifm|think", "thought", "think:any"])
def test_a_tag_is_reasoning_by_its_name(name: str) -> None:
    assert without_thought(f"<{name}>ANSWER: B</{name}>ANSWER: D") == "ANSWER: D"
