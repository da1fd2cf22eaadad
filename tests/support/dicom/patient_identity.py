"""Planted patient identities, which no importer may let through, and unique identifiers."""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from cardiolens.phantom.draws import Draws

_DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Identity:
    """An invented patient, visit and staff."""

    name: str
    patient_id: str
    other_id: str
    birth_date: str
    sex: str
    address: str
    phone: str
    accession: str
    study_date: str
    study_time: str  # hhmmss
    institution: str
    institution_address: str
    department: str
    station: str
    device_serial: str
    referrer: str
    performer: str
    operator: str
    comment: str

    @property
    def surname(self) -> str:
        return self.name.split("^", 1)[0]


@lru_cache(maxsize=1)
def _words() -> dict[str, Any]:
    tree: dict[str, Any] = yaml.safe_load((_DATA / "identities.yaml").read_text(encoding="utf-8"))
    return tree


def drawn_identity(seed: str) -> Identity:
    """Return the identity of a study, made of rare words so that a text search finds leaks."""
    draw, words = Draws(f"{seed}|identity", 0), _words()
    person = [f"{draw.one_of(words['surnames'])}^{draw.one_of(words['forenames'])}" for _ in range(4)]
    patient_id, accession = f"{_digits(draw, 10)}", f"A{_digits(draw, 9)}"
    born = _date(draw, 1931, 60)
    institution = draw.one_of(words["institutions"])
    return Identity(
        name=person[0],
        patient_id=patient_id,
        other_id=f"SSN-{_digits(draw, 9)}",
        birth_date=born,
        sex=draw.one_of("FM"),
        address=f"{draw.one_of(words['streets'])} {1 + int(draw.unit() * 98)}",
        phone=f"+999 555 {_digits(draw, 6)}",
        accession=accession,
        study_date=_date(draw, 2014, 10),
        study_time=f"{8 + int(draw.unit() * 9):02d}{int(draw.unit() * 60):02d}{int(draw.unit() * 60):02d}",
        institution=institution,
        institution_address=f"{draw.one_of(words['streets'])} 1, {institution.split()[0]}ville",
        department=draw.one_of(words["departments"]),
        station=f"MRC{_digits(draw, 5)}",
        device_serial=_digits(draw, 6),
        referrer=person[1],
        performer=person[2],
        operator=person[3],
        comment=draw.one_of(words["comments"]).format(
            name=person[0].replace("^", " "), patient_id=patient_id, born=born, referrer=person[1]
        ),
    )


def uid(*parts: object) -> str:
    """Return the UID of some parts, under the free root 2.25."""
    digest = hashlib.sha256("|".join(map(str, parts)).encode()).digest()
    return f"2.25.{int.from_bytes(digest[:16], 'big')}"


def _digits(draw: Draws, count: int) -> str:
    return "".join(str(int(draw.unit() * 10)) for _ in range(count))


def _date(draw: Draws, first_year: int, years: int) -> str:
    year, month, day = (int(draw.unit() * span) for span in (years, 12, 28))
    return f"{first_year + year:04d}{1 + month:02d}{1 + day:02d}"
