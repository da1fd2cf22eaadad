"""Lists made up by the grammar are read whole, and with an unreadable end not at all (protocol 16.2)."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardiolens.score.verdicts.parse import Parsed, parse_answer

SETS = [
    ("Basal segment", "Mid segment", "Apical segment", "Apex", "Papillary muscle"),
    ("Anterior wall", "Septal wall", "Inferior wall", "Lateral wall", "Right ventricular free wall"),
    ("Normal", "Thinned", "Thickened", "Bulging (outward contour deformity)"),
    ("Focal or segmental", "Patchy or multifocal", "Linear or band-like", "Diffuse"),
    ("Subendocardial", "Mid-wall", "Subepicardial", "Transmural"),
    ("No abnormality", "Mitral regurgitant jet", "Tricuspid regurgitant jet", "Restricted mitral opening"),
]
MARKS = [
    *(
        "ANSWER: ",
        "Answer: ",
        "answer = ",
        "**Final answer:** ",
        "The correct options are ",
        "The answer is ",
    ),
    *("Antwort: ", "答案：", "ANSWER:\n", "## Answer\n\n", "I saw much.\n\nANSWER: "),
]
ENTRIES = [
    *("{key}", "({key})", "{key}.", "**{key}**", "[{key}]", "{low}", "'{key}'", "`{key}`", "option {key}"),
    *(
        "{key}. {text}",
        "{key}) {text}",
        "{key}: {text}",
        "{key} - {text}",
        "{key} – {text}",
        "{key} ({text})",
    ),
    *("({key}) {text}", "{text}", "{text} ({key})"),
]
BETWEEN = [
    *(", ", ",", "; ", " and ", ", and ", " & ", " + ", "/", " as well as ", " plus ", "、", "，", " 和 "),
    *("\n", "\n\n", "\n- "),
]
ENDS = [
    *("", ".", "\n", ".\n\nThe rest is dark.", "\nConfidence: high", " because of the bright rim"),
    ", since the rim is bright",
]
BROKEN = [
    *(
        ", and the fifth one",
        ", possibly {key}",
        " and maybe {key}",
        " or {key}",
        ", ...",
        ", etc.",
        ", F, Z",
    ),
    *(
        " and",
        " and the outer third",
        " plus something else",
        ", Z",
        "?",
        " (and perhaps {key})",
        " to {key}",
    ),
    *(" and some of the rest", ". Also {key}.", ", und eventuell {key}", " and/or {key}", ", unclear"),
]
YES_NO = [
    *(
        ("yes", "no"),
        ("Yes", "No"),
        ("present", "absent"),
        ("true", "false"),
        ("✓", "✗"),
        ("correct", "incorrect"),
    ),
    *(("involved", "not involved"), ("affected", "spared"), ("bright", "dark")),
]
LINES = [
    *(
        "{key}: {said}",
        "{key}. {text}: {said}",
        "- {key}) {text} - {said}",
        "{text}: {said}",
        "{key} = {said}",
    ),
    *("| {key}. {text} | {said} |", "{key} is {said}"),
]

chosen = st.sampled_from(SETS).flatmap(
    lambda texts: st.tuples(
        st.just(texts), st.lists(st.integers(0, len(texts) - 1), min_size=1, max_size=len(texts), unique=True)
    )
)


def options_of(texts: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple(zip("ABCDE", texts, strict=False))


def written(texts: tuple[str, ...], picked: list[int], dice: random.Random) -> str:
    """A list of options in one format."""
    entry, between = dice.choice(ENTRIES), dice.choice(BETWEEN)
    last = dice.choice([between, " and ", ", and "]) if "\n" not in between else between
    entries = [entry.format(key="ABCDE"[at], low="abcde"[at], text=texts[at]) for at in picked]
    return between.join(entries[:-1]) + (last if len(entries) > 1 else "") + entries[-1]


@given(chosen, st.randoms(use_true_random=False), st.sampled_from(MARKS), st.sampled_from(ENDS))
def test_a_list_is_read_as_the_set_it_names(
    drawn: tuple[tuple[str, ...], list[int]], dice: random.Random, mark: str, end: str
) -> None:
    texts, picked = drawn
    text = mark + written(texts, picked, dice) + end
    found = parse_answer(text, options_of(texts), "multi")
    assert found.keys == tuple("ABCDE"[at] for at in sorted(picked)), text


def test_a_line_that_goes_on_with_an_unknown_option_begins_no_sentence() -> None:
    options = options_of(("Basal segment", "Mid segment", "Apical segment", "Apex", "Papillary muscle"))
    found = parse_answer("ANSWER: option A\noption B, and the fifth one", options, "multi")
    assert found.keys == ()
    assert found.status == "parse_error"


@given(chosen, st.randoms(use_true_random=False), st.sampled_from(MARKS), st.sampled_from(BROKEN))
def test_a_list_with_an_unreadable_end_is_never_read_in_part(
    drawn: tuple[tuple[str, ...], list[int]], dice: random.Random, mark: str, end: str
) -> None:
    texts, picked = drawn
    further = "ABCDEF"[next((at for at in range(len(texts)) if at not in picked), 5)]
    text = mark + written(texts, picked, dice) + end.format(key=further)
    found = parse_answer(text, options_of(texts), "multi")
    is_added = end.startswith(". Also") and further in found.keys  # and then nothing is left out
    assert is_added or found in {
        Parsed((), found.rule, "parse_error"),
        Parsed((), found.rule, "inconsistent"),
    }, text


@given(chosen, st.randoms(use_true_random=False))
def test_a_list_is_a_reply_by_itself(drawn: tuple[tuple[str, ...], list[int]], dice: random.Random) -> None:
    texts, picked = drawn
    if len(picked) == len(texts):  # the prompt repeated
        return
    text = written(texts, picked, dice)
    found = parse_answer(text, options_of(texts), "multi")
    assert found.keys in {tuple("ABCDE"[at] for at in sorted(picked)), ()}, text


@given(
    chosen,
    st.sampled_from(YES_NO),
    st.sampled_from(LINES),
    st.sampled_from(["\n", ", ", "; "]),
    st.sampled_from(["", "ANSWER:\n", "I went through all of them.\n\n"]),
)
def test_an_enumeration_chooses_what_it_affirms(
    drawn: tuple[tuple[str, ...], list[int]], said: tuple[str, str], line: str, between: str, before: str
) -> None:
    texts, picked = drawn
    entries = [
        line.format(key=key, text=text, said=said[0] if at in picked else said[1])
        for at, (key, text) in enumerate(options_of(texts))
    ]
    text = before + (between if line[0] not in "-|" else "\n").join(entries)
    found = parse_answer(text, options_of(texts), "multi")
    assert found.keys in {tuple("ABCDE"[at] for at in sorted(picked)), ()}, text
    if between == "\n" and line != "{key} is {said}":
        assert found.keys, text


@pytest.mark.parametrize("length", range(1, 60, 7))
def test_a_cut_reply_is_read_only_where_its_mark_is_complete(length: int) -> None:
    text = "The rim is bright in two levels.\nANSWER: A. Basal segment, C. Apical segment\nThe rest is dark."
    options = options_of(SETS[0])
    for end in range(length, len(text), 7):
        found = parse_answer(text[:end], options, "multi", cut=True)
        assert found.keys in {("A", "C"), ()}
        assert found.status in {"ok", "truncated"}
