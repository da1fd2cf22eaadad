"""Write one free-text report of a phantom study: its content, its style and its truth."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cardiolens.phantom.draws import Draws
from cardiolens.phantom.roster import Study
from cardiolens.protocol.tasks.catalogue import Catalogue
from tests.support.free_text.people import People
from tests.support.free_text.sentence_builder import Fact, Sentence, Writer
from tests.support.free_text.templates import STYLES, Style, frames, groups, words

_OPPOSITE = {  # contradicting grade of ejection fraction
    "normal": "severely_reduced",
    "mildly_reduced": "severely_reduced",
    "moderately_reduced": "normal",
    "severely_reduced": "normal",
}
_ELSEWHERE = {"anterior": "inferior", "septal": "lateral", "inferior": "anterior", "lateral": "septal"}
_WALL: dict[Style, str] = {
    "headed": "Late enhancement of the {0} wall only.",
    "narrative": "The late enhancement is confined to the {0} wall.",
    "terse": "LGE only {0} wall.",
}
_POSITIVE: dict[str, dict[Style, str]] = {
    "lge": {
        "headed": "Late enhancement of the lateral wall.",
        "narrative": "There is scar of the lateral wall.",
        "terse": "LGE+ lat wall.",
    },
    "t2": {
        "headed": "Oedema of the inferior wall.",
        "narrative": "There is oedema of the inferior wall.",
        "terse": "T2+ inf wall.",
    },
}


def contradiction(writer: Writer, measured: bool, draw: Draws) -> tuple[str, Sentence]:
    """Draw a contradiction that fits a report: its field and sentence.

    `measured`: the report gives the ejection fraction.
    """
    choices = ["polarity"]
    if measured:
        choices.append("number_adjective")
    if len(writer.found["lge.regions"]) == 1 and writer.found["lge.regions"][0] in _ELSEWHERE:
        choices.append("wall")
    kind = draw.one_of(choices)
    if kind == "number_adjective":
        (grade,) = writer.found["cine.lv_systolic"]
        return "cine.lv_systolic", Sentence(writer.stating("lv_systolic", _OPPOSITE[grade]))
    if kind == "wall":
        wall = _ELSEWHERE[writer.found["lge.regions"][0]]
        return "lge.regions", Sentence(_WALL[writer.style].format(wall))
    name, field, absent = draw.one_of([("lge", "lge.enhancement", "absent"), ("t2", "t2.signal", "normal")])
    if not writer.is_normal(name):
        return field, Sentence(writer.stating(name, absent))
    return field, Sentence(_POSITIVE[name][writer.style])


CONTRADICTORY = 0.12  # share of reports with a contradiction
_DOUBTFUL = 0.3  # share of reports with a finding in doubt
_LEFT_OUT = 0.15  # share of normal findings that a report does not mention
_MEASURED = 0.5  # share of measurable findings that a report gives as numbers
_NEEDED = ("lv_size", "lv_systolic", "lge", "diagnosis")  # never left out
_MEASURABLE = ("lv_size", "lv_systolic", "rv_size", "rv_systolic", "pericardium")
_OLD_EF = {"normal": 62, "mildly_reduced": 46, "moderately_reduced": 35, "severely_reduced": 23}


class Document:
    """A text and the facts that it states; `spelling` replaces words in sentences, never in identities."""

    def __init__(self, spelling: Mapping[str, str]) -> None:
        self.text = ""
        self.facts: dict[tuple[str, str], Fact] = {}
        self._spelling = spelling

    def raw(self, text: str) -> None:
        """Add text that is no sentence: headings, identities, line breaks."""
        self.text += text

    def say(self, sentences: Sequence[Sentence], *, between: str = " ", bullet: str = "") -> None:
        """Add sentences in order."""
        for number, sentence in enumerate(sentences, start=1):
            self.raw((between if number > 1 else "") + bullet.format(number))
            text = sentence.text
            for british, american in self._spelling.items():
                text = text.replace(british, american)
            self.raw(text)
            for fact in sentence.facts:
                self.facts.setdefault((fact.field, fact.certainty), fact)


@dataclass(frozen=True, slots=True)
class FreeReport:
    """A report, the accession number that links it to its study, and its truth record."""

    study_id: str
    accession: str
    sex: str
    text: str
    truth: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Content:
    """The sentences of a report, by the part of the report."""

    parts: dict[str, list[Sentence]]
    impression: list[Sentence]
    contradicted: str | None  # field of which one sentence says something else


def free_report(study: Study, catalogue: Catalogue) -> FreeReport:
    """Write the report of a study; randomness comes from the study's seed alone."""
    draw = Draws(f"{study.seed}|free text", 0)
    style: Style = draw.one_of(STYLES)
    people = People(study.seed, draw)
    writer = Writer(study, style, draw)
    content = _content(writer, draw)
    document = Document(words().american if draw.chance(0.4) else {})
    layouts = {"headed": _headed, "narrative": _narrative, "terse": _terse}
    layouts[style](document, content, people, draw)
    head = {"schema": "report-truth-1", "study_id": study.study_id}
    head |= {"accession": people.who.accession, "style": style}
    told = {"findings": _findings(content, document, catalogue), "identities": sorted(people.planted)}
    sex = "female" if people.who.sex == "F" else "male"
    return FreeReport(study.study_id, people.who.accession, sex, document.text, head | told)


def _content(writer: Writer, draw: Draws) -> _Content:
    measured = {name for name in _MEASURABLE if draw.chance(_MEASURED)}
    doubted = _doubted(writer, draw)
    parts: dict[str, list[Sentence]] = {}
    left_out = []
    for name, group in groups().items():
        normal = writer.is_normal(name)
        if name == "diagnosis":
            continue
        if name == doubted:
            parts.setdefault(group.part, []).append(writer.doubt(name))
        elif writer.is_void(name) or (normal and name not in _NEEDED and draw.chance(_LEFT_OUT)):
            left_out.append(name)
        else:
            parts.setdefault(group.part, []).extend(writer.group(name, measured=name in measured))
    field, sentence = (
        contradiction(writer, "lv_systolic" in measured, draw) if draw.chance(CONTRADICTORY) else (None, None)
    )
    if field and field.partition(".")[0] == doubted:
        field = None  # a certain statement does not contradict a doubt
    if field == "t2.signal" and "t2" in left_out:
        field = None
    impression = _impression(writer, doubted, field, sentence, draw)
    return _Content(parts, impression, field)


def _doubted(writer: Writer, draw: Draws) -> str | None:
    """Draw the group that a report leaves in doubt, if any."""
    if not draw.chance(_DOUBTFUL):
        return None
    return draw.one_of([name for name in groups() if writer.can_doubt(name) and not writer.is_void(name)])


def _impression(
    writer: Writer, doubted: str | None, denied: str | None, contrary: Sentence | None, draw: Draws
) -> list[Sentence]:
    """Write the impression; a sentence of it denies a field."""
    statements: list[Sentence] = []
    if denied != "cine.lv_systolic" and draw.chance(0.6):
        statements += writer.group("lv_systolic")
    if "lge" not in (doubted, (denied or "").partition(".")[0]) and draw.chance(0.5):
        first = writer.group("lge")[0]  # of several lesions, repeat the first
        statements.append(replace(first, facts=first.facts[:1]))
    if denied and contrary:
        statements.append(contrary)
    return statements + ([writer.doubt("diagnosis")] if doubted == "diagnosis" else writer.group("diagnosis"))


def _headed(document: Document, content: _Content, people: People, draw: Draws) -> None:
    headings = frames()["headings"]
    form, upper = draw.one_of(headings["forms"]), draw.one_of(headings["upper"])

    def heading(name: str) -> None:
        title = draw.one_of(headings["names"][name])
        document.raw("\n\n" + form.format(title.upper() if upper else title) + "\n")

    document.raw(draw.one_of(frames()["opening"]["headed"]).format_map(people))
    for section in ("indication", "history", "technique", "comparison"):
        if section == "history" and draw.chance(0.5):
            continue
        heading(section)
        document.say(_around(section, "headed", content, people, draw))
    heading("findings")
    for part, sentences in content.parts.items():
        document.raw(f"{draw.one_of(headings['parts'][part])}: ")
        document.say(sentences)
        document.raw("\n")
    document.raw(f"{draw.one_of(headings['parts']['other'])}: ")
    document.say([_plain(draw, "incidental")])
    heading("impression")
    document.say(content.impression, between="\n", bullet=draw.one_of(["{}. ", "- ", ""]))
    _close(document, "headed", people, draw)


def _narrative(document: Document, content: _Content, people: People, draw: Draws) -> None:
    document.raw(draw.one_of(frames()["opening"]["narrative"]).format_map(people) + " ")
    for section in ("indication", "history"):
        document.say(_around(section, "narrative", content, people, draw))
        document.raw(" ")
    document.raw("\n\n")
    document.say(_around("technique", "narrative", content, people, draw))
    document.raw("\n\n")
    document.say(_around("comparison", "narrative", content, people, draw))
    paragraph = {"left_ventricle": "\n\n", "lge": "\n\n"}
    for part, sentences in content.parts.items():
        document.raw(paragraph.get(part, " "))
        document.say(sentences)
    document.raw(" ")
    document.say([_plain(draw, "incidental")])
    document.raw("\n\n")
    document.say(content.impression)
    _close(document, "narrative", people, draw)


def _terse(document: Document, content: _Content, people: People, draw: Draws) -> None:
    document.raw(draw.one_of(frames()["opening"]["terse"]).format_map(people))
    document.raw(draw.one_of(["\nCI: ", "\nHx: ", "\nClin: "]))
    document.say(_around("indication", "terse", content, people, draw))
    document.raw("\nPrev: ")
    document.say(_around("comparison", "terse", content, people, draw))
    for sentences in content.parts.values():
        document.raw("\n")
        document.say(sentences)
    document.raw(draw.one_of(["\nImp: ", "\nConcl: ", "\n=> "]))
    document.say(content.impression)
    _close(document, "terse", people, draw)


def _around(section: str, style: Style, content: _Content, people: People, draw: Draws) -> list[Sentence]:
    """Return the sentences of a section without current findings."""
    names = {"indication": ["indications"], "history": ["histories"], "technique": ["techniques", "limits"]}
    if section in names:
        return [_plain(draw, name) for name in names[section]]
    return _comparison(style, content, people, draw)


def _comparison(style: Style, content: _Content, people: People, draw: Draws) -> list[Sentence]:
    phrases = frames()
    if draw.chance(0.5):
        return [Sentence(draw.one_of(phrases["no_prior"][style]))]
    grade = _grade(content)
    old = draw.one_of([name for name in _OLD_EF if name != grade])
    slots = {"old_ef": str(_OLD_EF[old]), "date": people["prior_date"], "her": people["her"]}
    text = draw.one_of(phrases["priors"][style]).format_map(slots)
    statements = [Sentence(text, (Fact("cine.lv_systolic", (old,), "historical"),))]
    absent_names = [name for name in phrases["resolved"] if _absent(name, content)]
    if absent_names and draw.chance(0.6):
        name = draw.one_of(absent_names)
        group = groups()[name]
        text = draw.one_of(phrases["resolved"][name][style]).format(year=people.year_before(2))
        fact = Fact(group.tells[0], (str(group.doubted),), "historical")
        statements.append(Sentence(text, (fact,)))
    return statements


def _grade(content: _Content) -> str | None:
    facts = (fact for sentence in content.parts["left_ventricle"] for fact in sentence.facts)
    return next((fact.values[0] for fact in facts if fact.field == "cine.lv_systolic"), None)


def _absent(name: str, content: _Content) -> bool:
    """Return whether the report states with certainty that a group is normal."""
    group = groups()[name]
    facts = [
        fact
        for sentence in content.parts.get(group.part, [])
        for fact in sentence.facts
        if fact.field == group.by
    ]
    return bool(facts) and all(
        fact.certainty == "certain" and set(fact.values) <= {"normal", "none", "absent"} for fact in facts
    )


def _plain(draw: Draws, name: str) -> Sentence:
    return Sentence(draw.one_of(frames()[name]))


def _close(document: Document, style: Style, people: People, draw: Draws) -> None:
    if draw.chance(0.4):
        document.raw("\n" + draw.one_of(frames()["remarks"][style]).format_map(people))
    document.raw("\n\n" + draw.one_of(frames()["closing"][style]).format_map(people) + "\n")


def _findings(content: _Content, document: Document, catalogue: Catalogue) -> list[dict[str, Any]]:
    """Return what the sentences state."""
    subtasks = {subtask.finding: subtask for subtask in catalogue.subtasks.values() if subtask.options}
    return [
        {
            "finding": fact.field,
            "subtask": subtasks[fact.field].id,
            "answer": [
                option.text
                for option in subtasks[fact.field].options
                if set(fact.values) & set(option.values)
            ],
            "certainty": fact.certainty,
            "contradicted": fact.field == content.contradicted and fact.certainty == "certain",
        }
        for fact in document.facts.values()
    ]
