"""What a report may not be taken to say: each doubt beside its twin without it, which is read."""

import pytest

from cardiolens.curation.questions.extraction_truth import Extraction, settle
from cardiolens.curation.questions.numbers import sex_of
from cardiolens.curation.questions.rule_extraction import extract
from cardiolens.curation.questions.unknown_words import Unknown
from cardiolens.phantom.roster import catalogue

CATALOGUE = catalogue()
SCAR = "Transmural scar of the inferior wall."


def told(text: str) -> Extraction:
    return settle(text, extract(text, sex_of(text, None), CATALOGUE), CATALOGUE)


TWINS = {  # rule: subtask, a text that leaves it open, a text that tells it, the answer
    "a title of a person": ("C17", "Mr Regurgitant was seen. No TR.", "No MR, no TR.", "A"),
    "a modality": ("C17", "Cardiac MR study. No TR.", "No MR. No TR.", "A"),
    "another sequence": (
        "L01",
        "First pass: less than normal enhancement of the septum.",
        "LGE: enhancement of the septum.",
        "B",
    ),
    "a list of what was acquired": (
        "L01",
        "Sequences acquired: cine, LGE and T2 STIR with scar assessment.",
        "LGE: scar.",
        "B",
    ),
    "a hedge": ("L01", "Equivocal scar of the septum.", "Definite scar of the septum.", "B"),
    "a hedge by letters": ("T01", "Poss oedema of the septum.", "Oedema of the septum.", "B"),
    "a question": ("L01", "Scar of the septum?", "Scar of the septum.", "B"),
    "what is over": (
        "C19",
        "The moderate pericardial effusion has resolved.",
        "Moderate pericardial effusion.",
        "C",
    ),
    "what was in the past": ("T01", "Had septal oedema as a child.", "Septal oedema.", "B"),
    "another examination": (
        "P01",
        "Perfusion defect of the septum on SPECT.",
        "Perfusion defect of the septum.",
        "B",
    ),
    "another examination's number": ("C10", "LVEF 25 % on echo.", "LVEF 25 %.", "D"),
    "an earlier number": ("C10", "LVEF 25 % ten years ago.", "LVEF 25 %.", "D"),
    "a silent heading": ("L01", "Hx: scar of the septum.", "LGE: scar of the septum.", "B"),
    "an earlier study": ("L01", "Prev: scar of the septum.", "Now: scar of the septum.", "B"),
    "a size without a grade": ("C01", "LV dilated.", "LV severely dilated.", "C"),
    "two grades": (
        "C10",
        "LV systolic function is mildly to moderately reduced.",
        "LV systolic function is moderately reduced.",
        "C",
    ),
    "a borderline": ("C01", "LV size is upper limit of normal.", "LV size is normal.", "A"),
    "a detail of one of two findings": (
        "L02",
        "Basal septal scar and inferior scar.",
        "Basal septal scar and basal inferior scar.",
        "A",
    ),
    "a layer between two walls": (
        "L05",
        "Late enhancement of the septum, mid-wall, and of the lateral wall.",
        "Mid-wall late enhancement of the septum and the lateral wall.",
        "B",
    ),
    "a further sentence that was not read": (
        "L03",
        "Scar of the septum. Another focus in the lateral wall.",
        "Scar of the septum. No thrombus.",
        "B",
    ),
    "a conclusion that says otherwise": (
        "L05",
        "Subendocardial scar of the septum.\nConclusion: subepicardial scar.",
        "Subendocardial scar of the septum.\nConclusion: subendocardial scar.",
        "A",
    ),
    "an abnormality that was not read": (
        "C10",
        "LVEF 60 %.\nConclusion: HFrEF.",
        "LVEF 60 %.\nConclusion: stable.",
        "A",
    ),
    "the right ventricle before": (
        "C10",
        "The RV is severely dilated. Systolic function is severely reduced.",
        "The LV is severely dilated. Systolic function is severely reduced.",
        "D",
    ),
    "a free wall without its ventricle": ("C02", "The free wall is thinned.", "The LV wall is thinned.", "B"),
    "a grade of something else": (
        "C01",
        "Large thrombus, dilated LV.",
        "Large thrombus, severely dilated LV.",
        "C",
    ),
    "a grade of the next word": (
        "C01",
        "The dilated LV has severely reduced function.",
        "The severely dilated LV has reduced function.",
        "C",
    ),
    "what was, and is now": (
        "C01",
        "The LV was severely dilated and is now normal.",
        "The LV is normal in size.",
        "A",
    ),
    "columns of two years": (
        "C10",
        "| Parameter | 2021 | 2024 |\n| LVEF | 28 % | 58 % |",
        "| Parameter | Value | Normal |\n| LVEF | 28 % | 57-77 % |",
        "D",
    ),
    "a denial and more": ("C15", "No LGE and reduced RV function.", "No LGE. Normal RV function.", "A"),
    "a bracket on another structure": (
        "C15",
        "LV function is normal (RV function is mildly reduced).",
        "RV function is mildly reduced.",
        "B",
    ),
    "two findings with a wall each": (
        "P03",
        "The inferior wall shows increased T2 signal plus perfusion defect of the septum.",
        "Perfusion defect of the septum.",
        "B",
    ),
    "a pattern of another finding": (
        "L04",
        "Scar of the septum and patchy oedema.",
        "Patchy scar of the septum.",
        "B",
    ),
    "places of another sentence": (
        "C03",
        "The apex is akinetic. These segments and the mid septum are thinned.",
        "The apex is akinetic. The mid septum is thinned.",
        "B",
    ),
    "a ventricle without its side": (
        "C12",
        "The ventricle is of normal size.",
        "The right ventricle is of normal size.",
        "A",
    ),
    "a late entry": (
        "C01",
        "LV severely dilated.\nLate entry: the sentence above should say mildly.",
        "LV severely dilated.",
        "C",
    ),
    "examples of a whole": (
        "C04",
        "The walls are thickened concentrically, 17 mm in the septum.",
        "The septum is thickened, 17 mm.",
        "B",
    ),
    "an atrium with two states": (
        "C16",
        "The left atrium is enlarged. The right atrium is normal. Both atria are enlarged.",
        "The left atrium is enlarged. The right atrium is normal.",
        "B",
    ),
    "an adjective of the first of two": (
        "C10",
        "Dilated LV and RV function is preserved.",
        "LV and RV function is preserved.",
        "A",
    ),
    "a place in a sentence that was not understood": (
        "L03",
        "Scar of the septum. A blob sits in the lateral wall.",
        "Scar of the septum. A blob sits in the left atrium.",
        "B",
    ),
    "a second sentence on the finding": (
        "L05",
        "Subendocardial scar of the septum. Scar thickness varies oddly.",
        "Subendocardial scar of the septum.\nThe weather varies oddly.",
        "A",
    ),
    "a pronoun in a sentence that was not understood": (
        "L02",
        "Basal septal scar. It fades oddly.",
        "Basal septal scar.\nLV mass oddly high.",
        "A",
    ),
    "a line of which nothing could be read": (
        "L05",
        "LGE: subendocardial, septum.\nLayer: [x] mid-wall [x] transmural",
        "LGE: subendocardial, septum.\nLayer: [ ] mid-wall [ ] transmural",
        "A",
    ),
    "a structure of which nothing was understood": (
        "C15",
        "RV function is normal. RV in trouble.",
        "RV function is normal. Liver in trouble.",
        "A",
    ),
    "a number behind the number": (
        "C10",
        "LVEF 48 %. By another way 38 %.",
        "LVEF 48 %. By the way, no effusion.",
        "B",
    ),
    "a denial behind what it denies": (
        "T01",
        "T2 signal is increased in the septum, no oedema.",
        "T2 signal is increased in the septum, no scar.",
        "B",
    ),
    "a valve that leaks and does not": (
        "C17",
        "Mild mitral regurgitation. No tricuspid regurgitation.\nConclusion: no mitral regurgitation.",
        "Mild mitral regurgitation. No tricuspid regurgitation.",
        "B",
    ),
    "a range of values": ("C19", "Mild to no pericardial effusion.", "Mild pericardial effusion.", "B"),
    "a grade of what is left out": (
        "C10",
        "Biventricular function: LV mildly, RV severely reduced.",
        "LV function: mildly reduced.",
        "B",
    ),
    "a denied grade": ("C01", "LV dilatation is not mild.", "LV dilatation is mild.", "B"),
    "where a finding is most": ("T03", "Oedema maximal in the septum.", "Oedema in the septum.", "B"),
    "a finding of another kind without a place": (
        "C08",
        "Akinesia of the inferior wall. Mild hypokinesia.",
        "Akinesia of the inferior wall. No thinning.",
        "C",
    ),
    "the size of an atrium as a grade": (
        "C16",
        "The left atrium is large and the right atrium is of normal size.",
        "The left atrium is enlarged and the right atrium is of normal size.",
        "B",
    ),
    "a change that is denied": (
        "C19",
        "No increase of the pericardial effusion.",
        "No pericardial effusion.",
        "A",
    ),
    "how the ventricle contracts as a whole": (
        "C06",
        "The left ventricle contracts normally.",
        "All segments contract normally.",
        "A",
    ),
    "a denial for a place": ("T01", "No oedema of the septum.", "No oedema.", "A"),
    "a denial with an exception": (
        "C06",
        "Normal wall motion except for the apex.",
        "Normal wall motion.",
        "A",
    ),
    "the rest of the muscle": (
        "C06",
        "The remaining segments contract normally.",
        "All segments contract normally.",
        "A",
    ),
    "a denial of a kind": ("L01", "No ischaemic scar.", "No scar.", "A"),
    "a denial of one of several grades": (
        "C06",
        "No dyskinesia.",
        "No regional wall motion abnormality.",
        "A",
    ),
    "a denial of thinning": ("C02", "No wall thinning.", "Normal wall thickness.", "A"),
    "function as a whole": ("C06", "Global LV contraction is normal.", "Wall motion is normal.", "A"),
    "another structure": (
        "L01",
        "Late enhancement of the pericardium.",
        "Late enhancement of the lateral wall.",
        "B",
    ),
    "a contrary word": ("L01", "LGE scar: - ve.", "LGE: scar.", "B"),
    "a share of a wall": (
        "L05",
        "Scar of the septum of 50 % transmural extent.",
        "Transmural scar of the septum.",
        "D",
    ),
    "a range of levels": (
        "P02",
        "Perfusion defect from basal to apical septum.",
        "Perfusion defect of the basal, mid and apical septum.",
        "ABC",
    ),
    "a range of walls": (
        "L03",
        "Scar from the anterior to the lateral wall.",
        "Scar of the anterior wall and the lateral wall.",
        "AD",
    ),
    "only here, and there": (
        "L03",
        "Scar, confined to the septum. Scar of the lateral wall.",
        "Scar of the septum and the lateral wall.",
        "BD",
    ),
    "two patterns where one is asked for": (
        "T04",
        "Focal oedema of the septum. Diffuse oedema of the lateral wall.",
        "Focal oedema of the septum.",
        "A",
    ),
    "a worse grade of motion": (
        "C06",
        "Hypokinesia of the septum; the apex is akinetoid.",
        "Hypokinesia of the septum.",
        "B",
    ),
    "places of motion that is not read": (
        "C07",
        "Hypokinetic basal septum. AK segs 13, 14.",
        "Hypokinetic basal septum.",
        "A",
    ),
    "a kind denied, and a finding of no kind": (
        "L01",
        "No focal scar. Late enhancement of the lateral wall.",
        "No focal scar. Diffuse late enhancement of the lateral wall.",
        "B",
    ),
    "a kind and everything denied, and a finding": (
        "L01",
        "No focal fibrosis or scar. Diffuse late enhancement of the lateral wall.",
        "No focal scar. Diffuse late enhancement of the lateral wall.",
        "B",
    ),
    "a sign alone": ("T01", "No oedema. T2+ inf wall.", "No oedema. Inf wall moves.", "A"),
    "the end of a list's item": (
        "C10",
        "LVEF 64 %.\nSUMMARY\n- LGE: none.\n- Severely impaired LV systolic function.",
        "LVEF 64 %.\nSUMMARY\n- LGE: none.\n- Normal LV systolic function.",
        "A",
    ),
    "a heading with lines about it": (
        "T01",
        "T2: no oedema.\nExtracardiac findings: none.\n== OPINION ==\nOedema of the septum.",
        "T2: no oedema.\nExtracardiac findings: none.\n== OPINION ==\nA normal study.",
        "A",
    ),
    "an arrow before a conclusion": (
        "L01",
        "LGE of the septum.\nSTIR: high signal of the septum.\n=> LGE neg.",
        "LGE of the septum.\nSTIR: high signal of the septum.\n=> LGE of the septum.",
        "B",
    ),
    "a number against words in short": ("C10", "LVEF 61 %. LV fn severely impaired.", "LVEF 61 %.", "A"),
    "words on a function that are not read": (
        "C10",
        "LVEF 32 %. The left ventricle contracts admirably.",
        "LVEF 32 %. The left atrium is there.",
        "C",
    ),
    "a wall in a sentence of another sequence": (
        "C02",
        "The lateral wall shows focal high signal on T2 weighting.",
        "The lateral wall shows focal thickening.",
        "C",
    ),
    "a plan": (
        "L01",
        "Viability study to assess scar of the septum.",
        "The study shows scar of the septum.",
        "B",
    ),
    "one of two structures": (
        "C16",
        "The left atrium is enlarged.",
        "The left atrium is enlarged, the right atrium normal.",
        "B",
    ),
    "normal motion from words of the whole ventricle": (
        "C06",
        "Ventricular wall contraction is good.",
        "All segments contract normally.",
        "A",
    ),
    "a level of the wall": ("C06", "Wall motion is normal at the base.", "Wall motion is normal.", "A"),
    "one side beside the name of both": (
        "C16",
        "Atria enlarged on the left.",
        "Both atria are enlarged.",
        "BC",
    ),
    "a side without its atrium": (
        "C16",
        "The left atrium is enlarged, the right normal.",
        "The left atrium is enlarged, the right atrium normal.",
        "B",
    ),
    "a side in other words": (
        "C16",
        "Left-sided atrium dilated; right-sided atrium normal.",
        "Left atrium dilated; right atrium normal.",
        "B",
    ),
    "two names and two values": (
        "C16",
        "LA and RA: dilated, normal.",
        "LA and RA: dilated.",
        "BC",
    ),
    "an enhancement of the wall beside its denial": (
        "L01",
        "There is enhancement from the endocardium through 45 % of the wall.\nNo scar on the late images.",
        "Normal enhancement at rest and stress.\nNo scar on the late images.",
        "A",
    ),
    "an increase that is denied": ("L01", "LGE not increased.", "LGE present.", "B"),
    "a size that is denied": ("L01", "No larger scar.", "No scar.", "A"),
    "a layer of one item of a list": (
        "L05",
        "LGE: septum (mid-wall), lateral wall (subepicardial), apex.",
        "LGE: septum and lateral wall (subepicardial).",
        "C",
    ),
}


@pytest.mark.parametrize("rule", TWINS)
def test_a_doubt_costs_the_answer_and_its_twin_has_one(rule: str) -> None:
    subtask, open_, told_, answer = TWINS[rule]
    assert told(told_).answers.get(subtask) == tuple(answer)
    assert subtask not in told(open_).answers


@pytest.mark.parametrize(
    "text",
    [
        "Is there septal LGE",
        "Does the septum enhance",
        "For septal scar",
        "Compatible with septal scar",
        "LV function compatible with normal",
        "Septum with LGE, lateral wall without",
        "Any septal LGE",
        "Extent of septal scar",
        "Septal scar images",
        "Normal LVEF is 60 %",
        "LVEF not 60 %",
        "LVEF up to 60 %",
        "LA ejection fraction 60 %",
        "LVEF 60 % at stress",
        "Normal LV function at stress",
        "LV severely dilated in systole",
        "Early enhancement of the septum",
        "LGE basal, mid and apical",
        "MR +, TR -",
        "MR, TR",
        "No MR, TR",
        "LA, RA enlarged",
        "LVOT normal, aortic valve bicuspid",
        "LV mildly dilated, now normal",
        "LV to be severely dilated",
        "LV neither dilated nor normal",
        "Thick wall",
        "Severely dilated",
        "Function normal",
        "Small effusion",
        "Pericardium not enhancing",
        "RV filling normal",
        "HCM",
        "HCM protocol",
        "LGE of HCM",
        "Study for HCM",
        "Impression: images for amyloidosis",
        "Mother\nLVEF 20 %",
        "Mother:\nLVEF 20 %\nLV severely dilated",
        "Her brother has DCM. LVEF 20 %.",
        "The donor heart was scanned. No LGE.",
        "The following is an example. No LGE.",
        "Outside echo (last week)\nLV severely dilated.\nLVEF 20 %.",
        "Normal values\nLVEF 60 %",
        "Moderate-to-severe LV dysfunction.",
        "LGE:\n\nNormal LV function",
    ],
)
def test_known_words_that_govern_nothing_tell_nothing(text: str) -> None:
    assert told(text).answers == {}


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ("RV free wall moves normally.", {"C14": ("A",)}),
        ("Septal scar reaching the lateral wall", {"L01": ("B",)}),
        ("Subendocardial to transmural scar", {"L01": ("B",)}),
        (
            "Late enhancement: subendocardial, apical segments, circumferential.",
            {"L01": ("B",), "L05": ("A",)},
        ),
        (
            "LV size normal.\nConclusion: no scar.\nReport of 14 weeks ago (copied)\nLV severely dilated.",
            {"C01": ("A",), "L01": ("A",)},
        ),
        (
            "LV size normal.\nConclusion: no scar.\nCMR 2019\nLV severely dilated.",
            {"C01": ("A",), "L01": ("A",)},
        ),
        ("5.2 LGE: none", {"L01": ("A",)}),
        (
            "Impression:\n1. No LGE.\n2. Dilated cardiomyopathy.",
            {"L01": ("A",), "D01": ("C",), "D02": ("B",)},
        ),
    ],
)
def test_what_stands_beside_an_open_part_is_told(text: str, answers: dict[str, tuple[str, ...]]) -> None:
    assert told(text).answers == answers


@pytest.mark.parametrize(
    ("word", "sentence", "is_hidden"),
    [
        ("trabeculated", "The apex is trabeculated.", False),
        ("meier", "Read together with Meier.", True),
        ("meier", "Dr. meier agrees.", True),
        ("trabeculated", "Trabeculated apex.", False),  # a capital that every sentence has
    ],
)
def test_a_word_that_may_name_somebody_is_not_printed(word: str, sentence: str, is_hidden: bool) -> None:
    unknown = Unknown(drafts=3, reports={f"r{number}": sentence for number in range(3)})
    assert unknown.may_be_name(word) is is_hidden
    assert Unknown(drafts=2, reports={"r1": sentence, "r2": sentence}).may_be_name(word), "too rare to tell"
