"""Sentences and headings that a group teaches: read in words of ours, told in the report's own."""

import time
from pathlib import Path

import pytest
from hospital_reports import SEEN, house_file, reports

from cardiolens.base.errors import InputError
from cardiolens.curation.questions.extraction_truth import settle
from cardiolens.curation.questions.group_words import with_words
from cardiolens.curation.questions.house_sentences import report_sentences, reword
from cardiolens.curation.questions.report_files import Report
from cardiolens.curation.questions.rule_extraction import extract
from cardiolens.curation.questions.statement import ReportStatement
from cardiolens.curation.questions.unknown_words import unread_sentences
from cardiolens.protocol.tasks.catalogue import Catalogue, load_catalogue
from cardiolens.protocol.tasks.phrases import HouseStyle

CATALOGUE = load_catalogue("openprotocol-1")
HOUSE = """\
values:
  grad: {n: normal, leicht erw: mildly dilated, n u: ''}
  lage: {sep: septal, lat: lateral, '-': ''}
headings:
  Nachkontrast: LGE
  Vorgeschichte: History
  Befund: Findings
  Vorbefund: Previous report
  Nachtrag: Addendum
sentences:
  RV G/F iO: RV size normal. RV function normal.
  'EDV # ml, Auswurf # Prozent': 'LVEF #2 %.'
  'Narbe {} durchgehend': 'Transmural LGE in the {} wall.'
  'Perfusion bei Stress {}': 'Perfusion: {}.'
  'Wanddicke normal {}': Wall thickness normal.
  LA {grad}, RA {grad}: 'Left atrium {grad}. Right atrium {grad}.'
  'Narbe basal {lage}, mitt {lage}': 'LGE in the basal {lage} wall. LGE in the mid {lage} wall.'
  Mit freundlichen Grüßen: ''
  Keine Narbe: 'LGE: none.'
  Segmente ohne Narbe: No LGE.
"""


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    return _taught(tmp_path_factory.mktemp("house"), HOUSE)


def _taught(folder: Path, words: str) -> Catalogue:
    path = folder / "words.yaml"
    path.write_text(words, encoding="utf-8")
    return with_words(CATALOGUE, path)


def _answers(text: str, catalogue: Catalogue) -> dict[str, tuple[str, ...]]:
    return settle(text, extract(text, None, catalogue), catalogue).answers


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ("RV G/F iO.", {"C12": ("A",), "C15": ("A",)}),
        ("- rv g/f  io\nLV size normal.", {"C12": ("A",), "C15": ("A",), "C01": ("A",)}),
        ("LV size normal. RV G/F iO", {"C12": ("A",), "C15": ("A",), "C01": ("A",)}),
        ("EDV 150 ml, Auswurf 35,5 Prozent.", {"C10": ("C",)}),
        ("Nachkontrast: none.", {"L01": ("A",)}),
        ("Nachkontrast\nNarbe inferior durchgehend.", {"L01": ("B",), "L03": ("C",), "L05": ("D",)}),
        ("Vorgeschichte\nRV G/F iO.", {}),  # a heading alone
        ("Narbe inferior durchgehend.", {"L01": ("B",), "L03": ("C",), "L05": ("D",)}),
        ("Narbe frobnicated durchgehend.", {}),
        ("Narbe not durchgehend.", {}),  # which ours would deny in the wrong place
        ("Narbe septal sparing lateral durchgehend", {}),
        ("Perfusion bei Stress no defect", {"P01": ("A",)}),  # as it stands
        ("Wanddicke normal noted", {"C02": ("A",)}),
        ("Wanddicke normal basal", {}),  # and elsewhere?
        ("Wanddicke normal bis auf das Septum", {}),
        ("Wanddicke normal except the septum", {}),
        ("RV G/F iO; vorbekannt dilatiert", {}),
        ("LA n, RA n.", {"C16": ("A",)}),
        ("LA Leicht  erw, RA n.", {"C16": ("B",)}),
        ("LA n, RA n u.", {}),  # of one atrium
        ("LA n, RA groß.", {}),  # no value of the house
        ("Narbe basal sep, mitt lat", {"L01": ("B",), "L02": ("A", "B"), "L03": ("B", "D")}),
        ("Narbe basal -, mitt lat", {"L01": ("B",), "L02": ("B",), "L03": ("D",)}),
        ("Narbe basal -, mitt -", {}),
        ("LA leicht erw, RA n\nNo pericardial effusion", {"C16": ("B",), "C19": ("A",)}),  # no heading
        ("Vorgeschichte:\nMRT 2019.\nKeine Narbe.\nBefund:\nRV G/F iO.", {"C12": ("A",), "C15": ("A",)}),
        ("Clinical question:\nKeine Narbe.", {}),
        ("Vorbefund:\nBefund:\nKeine Narbe.\n\nCurrent report:\nRV G/F iO.", {"C12": ("A",), "C15": ("A",)}),
        ("Keine Narbe.\n\nNachtrag:\nLGE of the lateral wall.", {}),
        ("Voruntersuchung 2019\nMit freundlichen Grüßen.\nRV G/F iO.", {}),  # of a heading that is not known
        ("RV G/F iO\r\nKeine Narbe\r\n", {"C12": ("A",), "C15": ("A",), "L01": ("A",)}),
        ("RV\u00a0G/F iO", {"C12": ("A",), "C15": ("A",)}),
        ("3 Segmente ohne Narbe", {}),
        ("1. Segmente ohne Narbe", {"L01": ("A",)}),
        ("Vorgeschichte:\nRV G/F iO.", {}),  # of the past, as all of its section
        ("RV G/F iO im Vergleich.", {}),  # another sentence
        ("Siehe RV G/F iO.", {}),
    ],
)
def test_a_taught_sentence_is_read_where_it_is_whole(
    text: str, answers: dict[str, tuple[str, ...]], taught: Catalogue
) -> None:
    assert _answers(text, taught) == answers


def test_what_was_read_is_told_in_the_words_of_the_report(taught: Catalogue) -> None:
    text = "Befund\nLV size normal.\nRV G/F iO.\nNachkontrast: no enhancement.\nNo pericardial effusion."
    statements = {statement.subtask: statement for statement in extract(text, None, taught)}
    assert {name: statements[name].quote for name in ("C12", "C15", "C19")} == {
        "C12": "RV G/F iO",
        "C15": "RV G/F iO",
        "C19": "No pericardial effusion",
    }
    for statement in statements.values():
        assert text[statement.start : statement.end] == statement.quote
        assert ReportStatement.of(statement.record(1)) == statement
    reading = statements["C15"].reading
    assert reading is not None
    assert reading.quote == "RV function normal"


def test_places_of_a_reworded_text_are_places_of_the_report() -> None:
    house = HouseStyle(
        {"Nachkontrast": "LGE"}, {}, {"RV G/F iO": "RV size normal. RV function normal", "Gruß an alle": ""}
    )
    text = "Nachkontrast: none.\nGruß an alle.\nRV G/F iO. End."
    reworded = reword(text, house)
    assert reworded.text == "LGE: none.\n\nRV size normal. RV function normal. End."
    for words, quote in (
        ("none", "none"),
        ("End", "End"),
        ("function", "RV G/F iO"),
        ("LGE", "Nachkontrast"),
    ):
        start = reworded.text.index(words)
        first, last = reworded.source(start, start + len(words))
        assert text[first:last] == quote
    first, last = reworded.source(0, reworded.text.index("none") + 4)
    assert text[first:last] == "Nachkontrast: none"


def test_a_text_without_taught_sentences_is_not_touched() -> None:
    text = "RV G/F iO."
    assert reword(text, HouseStyle()).text is text


@pytest.mark.parametrize(
    "words",
    [
        "sentences: {'RV erw (expected # to #)': 'RV mildly dilated.'}",  # what is open is in a bracket
        "sentences: {'RV mildly dilated (EDVi #)': 'RV mildly dilated. RVEDVi # ml/m2.'}",  # 50 is a sample
        "sentences: {A biopsy is recommended: ''}",  # a plan may be left out
        "sentences: {'Schicht subepikardial': 'Layer: subepicardial.'}",  # a detail of the line above
    ],
)
def test_what_can_be_right_is_not_refused(tmp_path: Path, words: str) -> None:
    assert _taught(tmp_path, words).house.sentences


@pytest.mark.full
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("headings: {Nachkontrast: frobnication}", "is no heading of ours"),
        ("headings: {'##': LGE}", "has no letters, or a slot"),
        ("headings: {CURRENT REPORT: Findings}", "opens a report with us"),
        ("sentences: {Follow up of possible Narbe: ''}", "holds 'possible'"),
        ("sentences: {iO: RV size normal.}", "no whole sentence"),
        ("sentences: {RV G iO: RV frobnicated normal.}", "'frobnicated' is not understood"),
        ("sentences: {RV G iO: We thank you.}", "not understood|no answer is read"),
        ("sentences: {'EDV # ml, EF # Prozent': 'LVEF # %.'}", "number those of ours, e.g. #2"),
        ("sentences: {'EF Prozent': 'LVEF # %.'}", "has no slot for #1"),
        ("sentences: {'Narbe überall': 'LGE in the {} wall.'}", r"has no slot for \{1\}"),
        ("sentences: {RV size normal: RV severely dilated.}", "is read by us as C12 Normal"),
        ("sentences: {possible Narbe septal: LGE in the septal wall.}", "holds 'possible'"),
        ("sentences: {'RV {grad}': 'RV size {grad}.'}", r"slot \{grad\}, of which no values are given"),
        (
            "values: {g: {n: normal}}\nsentences: {'RV {g}/{g}': 'RV size {g}.'}",
            r"number those of ours, e.g. \{g2\}",
        ),
        (
            "values: {g: {n: normal, x: frobnicated}}\nsentences: {'RV {g}': 'RV size {g}.'}",
            "'frobnicated' is not",
        ),
        (
            "values: {g: {n: normal, normal: severely dilated}}\nsentences: {'RV size {g}': 'RV size {g}.'}",
            "is read by us as",
        ),
        ("values: {g: {possible: normal}}", "'g' holds 'possible'"),
        ("values: {g: {}}", "has no values"),
        ("values: {g: {a: '{}'}}", "has a slot in"),
        ("values: {G1: {n: normal}}", "is no name"),
        ("sentences: {'Previous report of #.#': ''}", "opens a part of a report"),
        ("sentences: {Clinical question: ''}", "opens a part of a report"),
        ("sentences: {RV severely dilated: ''}", "tells C12 Markedly dilated with us"),
        ("values: {g: {m: normal, M: severely dilated}}", "'m' more than once"),
        ("sentences: {RV M: RV normal., RV m: RV severely dilated.}", "'rv m' stands more than once"),
        ("sentences: {'T# unauffällig': T2 signal normal.}", "# right behind a letter"),
        ("sentences: {'EF #1 Prozent': 'LVEF # %.'}", "only those of ours have one"),
        ("sentences: {'EDVI # EF #': 'LVEF #2 %. LVEDVi # ml/m2.'}", "number all, e.g. #1"),
        ("sentences: {Narbe septal (possible): LGE in the septal wall.}", "holds 'possible'"),
        ("sentences: {'Narbe septal?': LGE in the septal wall.}", "asks"),
        ("sentences: [a, b]", "sentences"),
    ],
)
def test_sentences_that_cannot_be_right_are_refused(tmp_path: Path, words: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        _taught(tmp_path, words)


def test_the_key_of_the_records_changes_with_the_sentences(tmp_path: Path, taught: Catalogue) -> None:
    other = _taught(tmp_path, HOUSE.replace("Auswurf", "Ejektion"))
    assert len({CATALOGUE.sha256, taught.sha256, other.sha256}) == 3


def test_sentences_that_recur_and_are_not_understood_are_counted(taught: Catalogue) -> None:
    texts = [f"- LV {size} groß, EDV {size} ml.\nRV G/F iO. No LGE." for size in (150, 151, 152)]
    reports = [Report(str(at), at, text, f"S{at}", None, ()) for at, text in enumerate(texts)]
    assert unread_sentences(reports, taught) == {"LV # groß, EDV # ml": 3}
    assert unread_sentences(reports, CATALOGUE)["RV G/F iO"] == 3


def _count(writer: str, style: str, catalogue: Catalogue, part: slice) -> tuple[int, int, float]:
    """Return drafts, wrong ones, and the share of what is told for certain that is drafted."""
    of_style = [one for one in reports({"d": "tenth", "e": "tenth_closed"}[writer]) if one.style == style]
    n_drafts, n_wrong, n_hits, n_told = 0, 0, 0, 0
    for report in of_style[part]:
        answers = {name: "".join(keys) for name, keys in _answers(report.text, catalogue).items()}
        n_drafts += len(answers)
        n_wrong += len(report.truth.wrong(answers))
        n_told += len(report.truth.told)
        n_hits += sum(answers.get(name) == keys for name, keys in report.truth.told.items())
    return n_drafts, n_wrong, n_hits / n_told


@pytest.mark.full
@pytest.mark.parametrize(
    ("writer", "style", "seen", "unseen"),
    [
        ("e", "form", 0.85, 0.6),
        ("d", "template", 0.8, 0.5),
        pytest.param("d", "terse", 0.7, 0.35, marks=pytest.mark.long),
        pytest.param("e", "table", 0.7, 0.35, marks=pytest.mark.long),
        pytest.param("e", "terse", 0.8, 0.35, marks=pytest.mark.long),
        pytest.param("d", "dictation", 0.3, 0.05, marks=pytest.mark.long),
    ],
)
def test_a_hospital_that_teaches_its_words_is_read(
    writer: str, style: str, seen: float, unseen: float
) -> None:
    taught = with_words(CATALOGUE, house_file(writer, style))
    for part, least in ((slice(0, SEEN), seen), (slice(SEEN, None), unseen)):
        n_drafts, n_wrong, recall = _count(writer, style, taught, part)
        assert (n_wrong, n_drafts > 0) == (0, True)
        assert recall >= least


def test_a_turned_line_is_left_to_no_other_entry_with_free_words(tmp_path: Path) -> None:
    words = "sentences: {'Narbe {} durchgehend': 'Transmural LGE in the {} wall.', 'Narbe {}': ''}"
    catalogue = _taught(tmp_path, words)
    assert reword("Narbe not septal durchgehend", catalogue.house).text == "Narbe not septal durchgehend"
    assert reword("Narbe LGE of the septum", catalogue.house).text == "Narbe LGE of the septum"
    assert reword("Narbe wie besprochen.\nX", catalogue.house).text == "\nX"


def test_the_order_of_entries_is_part_of_the_key(tmp_path: Path) -> None:
    entries = ["'RV {a}': 'RV size {a}.'", "'RV {b}': 'RV function {b}.'"]
    values = "values: {a: {x: normal}, b: {x: normal}}"
    both = [
        _taught(tmp_path, f"{values}\nsentences: {{{', '.join(order)}}}")
        for order in (entries, entries[::-1])
    ]
    assert both[0].sha256 != both[1].sha256
    assert [set(_answers("RV x.", catalogue)) for catalogue in both] == [{"C12"}, {"C15"}]


def test_numbers_at_the_beginning_of_a_line_are_whole(tmp_path: Path) -> None:
    catalogue = _taught(tmp_path, "sentences: {'# % EF': 'LVEF # %.'}")
    assert reword("35 % EF", catalogue.house).text == "LVEF 35 %."


def test_words_between_wide_gaps_take_no_time(tmp_path: Path) -> None:
    catalogue = _taught(tmp_path, "sentences: {'Basal {} {} {} {}': 'LGE in the basal {1} wall.'}")
    line = (
        "Basal "
        + " ".join(f"{cell:16}" for cell in ("a b", "c", "d", "e f", "g"))
        + "; x "
        + " " * 20_000
        + "y"
    )
    started = time.process_time()
    reword(line, catalogue.house)
    assert time.process_time() - started < 5.0


def test_a_model_may_quote_a_line_that_says_nothing(taught: Catalogue) -> None:
    text = "Mit freundlichen Grüßen\nKeine Narbe."
    assert report_sentences(text, taught.house)[0].start == 0
    assert report_sentences("Mit freundlichen Grüßen.", taught.house)[0].start == 0


def test_a_sentence_is_counted_as_it_may_be_taught() -> None:
    for text, key in (
        ("T2 Signal o.B.", "T2 Signal o.B"),
        ("0 Segmente mit 2 Narben.", "# Segmente mit # Narben"),
    ):
        report = Report("0", 0, text, "S0", None, ())
        assert list(unread_sentences([report], CATALOGUE)) == [key]
