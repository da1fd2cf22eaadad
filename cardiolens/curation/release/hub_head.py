"""The YAML head of a data card, as the Hugging Face hub and the library `datasets` read it."""

from collections.abc import Mapping
from typing import Any

import yaml

from cardiolens.curation.release.question_table import TABLES

_FIXED = {
    "language": ["en"],
    "task_categories": ["visual-question-answering"],
    "tags": ["medical", "cardiac-mri", "benchmark", "cardiolens"],
}
# Licences that the hub knows under the name that SPDX gives them, in small letters; and three others.
_SAME = (
    "Apache-2.0 CC0-1.0 CC-BY-2.0 CC-BY-2.5 CC-BY-3.0 CC-BY-4.0 CC-BY-SA-3.0 CC-BY-SA-4.0 CC-BY-NC-2.0 "
    "CC-BY-NC-3.0 CC-BY-NC-4.0 CC-BY-ND-4.0 CC-BY-NC-ND-3.0 CC-BY-NC-ND-4.0 CC-BY-NC-SA-2.0 CC-BY-NC-SA-3.0 "
    "CC-BY-NC-SA-4.0 CDLA-Permissive-1.0 CDLA-Permissive-2.0 CDLA-Sharing-1.0 MIT"
)
_SPDX = {name.lower(): name for name in [*_SAME.split(), "ODbL-1.0", "ODC-By-1.0", "PDDL-1.0"]}
_OTHER_IDS = {"ODbL-1.0": "odbl", "ODC-By-1.0": "odc-by", "PDDL-1.0": "pddl"}


def hub_head(facts: Mapping[str, Any]) -> str:
    """Return the head of a release's card: its licence, and a split for each cohort."""
    head = {**licence_tags(str(facts["licence"])), "pretty_name": facts["name"], **_FIXED}
    files = [
        {"split": split_of(cohort), "path": f"{TABLES}/{cohort}/*.parquet"}
        for cohort, sizes in facts["cohorts"].items()
        if sizes["questions"]
    ]
    head["configs"] = [{"config_name": "default", "data_files": files}]
    return yaml.safe_dump(head, sort_keys=False)


def licence_tags(licence: str) -> dict[str, str]:
    """Return the hub's own id of a licence that SPDX names, else `other` with the words of the holder."""
    name = spdx_name(licence)
    if name is None:
        return {"license": "other", "license_name": licence}
    return {"license": _OTHER_IDS.get(name, name.lower())}


def spdx_name(licence: str) -> str | None:
    """Return SPDX's spelling of a licence that the hub knows, else None."""
    return _SPDX.get(licence.strip().lower())


def split_of(cohort: str) -> str:
    """Return the name of a cohort's split: `datasets` takes no hyphen, and cohorts have no underscore."""
    return cohort.replace("-", "_")
