"""Invented people and dates of a report, and a record of those that its text contains."""

from cardiolens.phantom.draws import Draws
from tests.support.dicom.patient_identity import Identity, drawn_identity

_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_PLAIN = ("title", "her")  # slots that identify nobody


class People:
    """Template slots of one identity, formatted for one report; `planted` collects the values used."""

    def __init__(self, seed: str, draw: Draws) -> None:
        who: Identity = drawn_identity(seed)
        self.who, self.planted = who, set[str]()
        form, order = int(draw.unit() * 4), draw.chance(0.5)
        self._slots = {
            "name": _person(who.name, surname_first=order),
            "surname": _cased(who.surname),
            "born": _date(who.birth_date, form),
            "date": _date(who.study_date, form),
            "prior_date": _date(_earlier(who.study_date, 1 + int(draw.unit() * 4)), form),
            "patient_id": who.patient_id,
            "accession": who.accession,
            "address": who.address,
            "phone": who.phone,
            "institution": who.institution,
            "department": who.department,
            "referrer": _person(who.referrer, surname_first=False),
            "referrer_surname": _cased(who.referrer.split("^", 1)[0]),
            "performer": _person(who.performer, surname_first=False),
            "performer_surname": _cased(who.performer.split("^", 1)[0]),
            "title": "Ms" if who.sex == "F" else "Mr",
            "her": "her" if who.sex == "F" else "him",
        }

    def __getitem__(self, name: str) -> str:
        if name not in _PLAIN:
            self.planted.add(self._slots[name])
        return self._slots[name]

    def year_before(self, years: int) -> int:
        """Return the year `years` before the examination."""
        return int(self.who.study_date[:4]) - years


def _person(name: str, *, surname_first: bool) -> str:
    surname, forename = name.split("^", 1)
    return f"{surname}, {forename}" if surname_first else f"{forename} {_cased(surname)}"


def _cased(surname: str) -> str:
    return surname.title() if surname.isupper() else surname


def _earlier(day: str, years: int) -> str:
    return f"{int(day[:4]) - years:04d}{day[4:]}"


def _date(day: str, form: int) -> str:
    year, month, number = day[:4], day[4:6], day[6:]
    spelled = f"{int(number)} {_MONTHS[int(month) - 1]} {year}"
    return (f"{number}.{month}.{year}", f"{number}/{month}/{year}", f"{year}-{month}-{number}", spelled)[form]
