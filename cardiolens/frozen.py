"""What every piece of configuration is made of: frozen, without unknown keys, errors in its own words."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

Positive = Annotated[int, Field(gt=0)]
Auto = Literal["auto"]
Gib = Annotated[float, Field(gt=0)]
Rate = Annotated[float, Field(gt=0)]
Seed = Annotated[int, Field(ge=0)]


class Spec(BaseModel):
    """A frozen piece of configuration; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


_SAID = 5  # errors that one message names


def describe(error: ValidationError) -> str:
    """A validation error in the words of the configuration file; the first few where there are many."""
    lines = []
    found = error.errors(include_url=False)
    for item in found[:_SAID]:
        where = ".".join(map(str, item["loc"]))
        shown = (
            not isinstance(item["input"], dict | BaseModel) and "key" not in where
        )  # a key is not repeated
        given = f", got {item['input']!r}" if shown else ""
        said = f"{item['msg'].removeprefix('Value error, ')}{given}"
        lines.append(f"{where}: {said}" if where else said)
    more = [f"and {len(found) - _SAID} more"] if len(found) > _SAID else []
    return "; ".join(lines + more)
