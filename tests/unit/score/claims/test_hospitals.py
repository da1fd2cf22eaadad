"""With two to four hospitals known, the page says that it speaks of these alone (amendment 17.5)."""

import pytest

from cardiolens.score.claims.hospitals import hospitals


def of_sites(number: int, of: int = 30) -> list[str]:
    sites = {f"H{at}": {f"p{10 * at + one}" for one in range(10)} for at in range(number)}
    return [str(row["sentence"]) for row in hospitals({"site": sites, "vendor": {"x": {"p1"}}}, of).rows]


@pytest.mark.parametrize("number", [0, 1, 5, 12])
def test_one_hospital_or_five_give_no_sentence(number: int) -> None:
    assert of_sites(number) == []
    assert hospitals({}, 30).rows == []


@pytest.mark.parametrize(("number", "word"), [(2, "two"), (3, "three"), (4, "four")])
def test_two_to_four_speak_of_themselves_alone(number: int, word: str) -> None:
    (sentence,) = of_sites(number, 10 * number)
    assert sentence.startswith(
        f"The patients come from {word} hospitals: scores, intervals and claims speak of"
    )
    assert "H1" not in sentence


def test_patients_of_unknown_hospitals_are_counted() -> None:
    (sentence,) = of_sites(3, 45)
    assert "three hospitals (known for 30 of 45 patients)" in sentence
