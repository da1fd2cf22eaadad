"""The people of a review: pseudonym, role, and a link of their own; and the key of blind names."""

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.base.private_file import check_private
from cardiolens.base.untrusted.bounded_files import read_json
from cardiolens.config.base import Spec, describe

LINKS = "links.json"
Role = Literal["reader", "adjudicator"]
Pseudonym = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,31}$")]
_TOKEN_BYTES, _KEY_BYTES = 24, 32


@dataclass(frozen=True, slots=True)
class Person:
    """Who looks at the page."""

    name: str
    role: Role


class _Link(Spec):
    role: Role
    token: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{32,64}$")]


class _Links(Spec):
    """The file of links, for the owner of the review alone."""

    schema_: Literal["links-1"] = Field("links-1", alias="schema")
    key: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]  # of the names that people who read are shown
    people: Mapping[Pseudonym, _Link] = {}


@dataclass(frozen=True)
class People:
    """Everyone by the token of their link, and the key of blind names."""

    by_token: Mapping[str, Person]
    key: bytes = field(default_factory=lambda: secrets.token_bytes(_KEY_BYTES), repr=False)

    @staticmethod
    def alone(name: str) -> "People":
        """Return one reader with a new link."""
        return People({secrets.token_urlsafe(_TOKEN_BYTES): Person(name, "reader")})

    def owner(self, token: str) -> Person | None:
        """Return the person of a link by its token, or None; every token is compared in the same time."""
        sent = token.encode("utf-8", "replace")
        matches = [(secrets.compare_digest(sent, own.encode()), one) for own, one in self.by_token.items()]
        return next((person for match, person in matches if match), None)


def read_people(out: Path, readers: Sequence[str], third: str | None) -> People:
    """Read the people of a review, and make links for new ones; links and key never change.

    InputError if nobody is named, if somebody has another role already, or if others can read the file.
    """
    path = out / LINKS
    links = _read(path) if path.exists() else _Links(schema="links-1", key=secrets.token_hex(_KEY_BYTES))
    people = dict(links.people)
    roles: dict[str, Role] = dict.fromkeys(readers, "reader")
    roles |= {} if third is None else {third: "adjudicator"}
    if len(roles) < len(readers) + (third is not None):
        raise InputError("readers= and third=: name each person once; a third has not read the item before")
    for name, role in roles.items():
        if name in people and people[name].role != role:
            raise InputError(f"{name}: is {people[name].role} of this review already; take another pseudonym")
        people.setdefault(name, _Link(role=role, token=secrets.token_urlsafe(_TOKEN_BYTES)))
    if not people:
        raise InputError("readers= is not given; name who reads, by pseudonyms: readers=[r1,r2] third=r3")
    try:
        links = _Links(schema="links-1", key=links.key, people=people)
    except ValidationError:
        raise InputError(
            f"readers= and third=: {', '.join(roles)}: expected pseudonyms of at most 32 small letters, "
            "digits and '-'; not names of persons, because every output file contains them"
        ) from None
    disk.write_private(path, (json.dumps(links.model_dump(by_alias=True), indent=1) + "\n").encode())
    by_token = {link.token: Person(name, link.role) for name, link in people.items()}
    return People(by_token, bytes.fromhex(links.key))


def _read(path: Path) -> _Links:
    check_private(path, str(path), "decide in the name of others")
    try:
        return _Links.model_validate(read_json(path))
    except (OSError, ValueError) as error:
        reason = describe(error) if isinstance(error, ValidationError) else error
        reason = getattr(error, "strerror", None) or reason
        raise InputError(f"{path}: cannot be read ({reason}); remove it, and pass on the new links") from None
