"""Groups of patients, from the manifests of their studies."""

from pathlib import Path

from small_cohort import make_cohort, volume_row

from cardiolens.score.claims.parts_of_cohort import groups_of
from cardiolens.storage.schemas import VERDICTS, VOLUMES
from cardiolens.storage.tables import from_rows, write_part
from cardiolens.study.cohort import Cohort, read_cohort, write_cohort


def test_patients_are_in_the_subgroups_that_all_of_their_studies_name(tmp_path: Path) -> None:
    store = make_cohort(tmp_path, 5) / "store"
    cohort = read_cohort(store)
    assert cohort is not None
    told = [{"vendor": "A"}, {"vendor": "A", "sex": "female"}, {"vendor": "B"}, {}, {"vendor": "B"}]
    studies = {
        name: record.model_copy(update={"subgroups": words})
        for (name, record), words in zip(cohort.studies.items(), told, strict=True)
    }
    # a second study of the first patient, on another vendor's scanner
    row = volume_row("PH-0006", "cine_sax", 3, 6) | {"patient_id": "PH-0001", "cohort": []}
    write_part(
        store / "volumes",
        from_rows([row | {"part": "two.parquet", "row_group": 0}], VOLUMES),
        VOLUMES,
        name="two.parquet",
    )
    (store / "frames" / "two.parquet").touch()
    studies["PH-0006"] = studies["PH-0005"].model_copy(update={"part": "two.parquet"})
    write_cohort(store, Cohort(window_pct=cohort.window_pct, studies=studies, failed={}))
    judged = from_rows([{"patient_id": f"PH-000{number}"} for number in range(1, 5)], VERDICTS)
    assert groups_of(store, judged).subgroups == {
        "vendor": {"A": {"PH-0002"}, "B": {"PH-0003"}},
        "sex": {"female": {"PH-0002"}},
    }


def test_a_store_of_an_earlier_version_has_no_subgroups(tmp_path: Path) -> None:
    store = make_cohort(tmp_path, 2) / "store"
    assert groups_of(store, from_rows([{"patient_id": "PH-0001"}], VERDICTS)).subgroups == {}
