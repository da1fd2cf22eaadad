"""The metadata of a release as Croissant: the files, the columns of the tables, and responsible use.

Croissant 1.0 and its vocabulary for responsible AI (RAI 1.0), both of MLCommons. `url` is left out: a release
has no page before somebody gives it one.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from cardiolens.curation.release.hub_head import spdx_name, split_of
from cardiolens.curation.release.known_limits import known_limits
from cardiolens.curation.release.question_table import PICTURE, TABLES, description_of, table_schema
from cardiolens.protocol.tasks.catalogue import Catalogue

CROISSANT = "croissant.json"
Record = dict[str, Any]

_NAMESPACES = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "sc": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
}
_TERMS = (  # in the namespace cr
    "citeAs column equivalentProperty extract field fileObject fileProperty fileSet format includes "
    "isLiveDataset jsonPath key md5 parentField path recordSet references regex repeated replace "
    "samplingRate separator source subField transform"
)
_TYPED = {
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
}
_CONTEXT = _NAMESPACES | {term: f"cr:{term}" for term in _TERMS.split()} | _TYPED
_CONFORMS = ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"]
_TYPES = {"string": "sc:Text", "int32": "sc:Integer", "bool": "sc:Boolean"}
_PARQUET = "application/x-parquet"


def croissant(facts: Mapping[str, Any], catalogue: Catalogue) -> Record:
    """Return the description of a release by its facts; one record set for each cohort that has questions."""
    cohorts = [name for name, sizes in facts["cohorts"].items() if sizes["questions"]]
    spdx = spdx_name(facts["licence"])
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": _CONFORMS,
        "name": facts["name"],
        "description": f"Questions on cardiac MRI studies, in the words of {facts['protocol']}. Research use "
        f"only; not a medical device. {facts['canary']}",
        "license": facts["licence"] if spdx is None else f"https://spdx.org/licenses/{spdx}.html",
        "version": _version(str(facts["number"])),
        "datePublished": datetime.now(UTC).date().isoformat(),
        "citeAs": f"{facts['name']} {facts['number']}, made by {facts['made_by']}",
        "keywords": ["cardiac MRI", "visual question answering", "benchmark"],
        "inLanguage": "en",
        **responsible_use(facts, catalogue),
        "distribution": [_files(cohort) for cohort in cohorts],
        "recordSet": [_records(cohort, frames=bool(facts["frames"])) for cohort in cohorts],
    }


def responsible_use(facts: Mapping[str, Any], catalogue: Catalogue) -> Record:
    """Return the properties of RAI, of what the facts say; nothing is claimed that they do not."""
    origins = ", ".join(f"{name} {count}" for name, count in sorted(facts["origins"].items()))
    kappas = [
        f"{row['questions']} questions: {'not measured' if row['kappa'] is None else row['kappa']}"
        for row in facts["agreement"]
    ]
    shares = [
        f"{cohort}: {name} {', '.join(f'{value} {count}' for value, count in values.items())}"
        for cohort, groups in facts["subgroups"].items()
        for name, values in groups.items()
    ]
    told = {
        "dataCollection": f"Cardiac MRI studies with questions on each. Answers come from: {origins}.",
        "dataCollectionType": ["Secondary Data analysis", "Manual Human Curation"],
        "dataPreprocessingProtocol": [
            "Headers of images are written anew with geometry alone; voxels are unchanged.",
            "Ids are new and lead to no patient.",
        ],
        "dataAnnotationProtocol": f"Questions and options are those of {facts['protocol']}; "
        f"{facts['verified']} of {facts['questions']} answers are verified or stated by their origin.",
        "dataAnnotationAnalysis": [f"Kappa of two readers in the batch, {kappa}" for kappa in kappas],
        "annotationsPerItem": "; ".join(
            f"{'people not told' if n == '0' else f'{n} people'}: {count} questions"
            for n, count in facts["readers"].items()
        ),
        "dataBiases": shares or ["Sex, age, scanner and site of the studies are not told."],
        "dataLimitations": known_limits(facts, catalogue),
        "dataUseCases": [
            "Evaluation of models that read images; not training, and not the care of patients."
        ],
        "personalSensitiveInformation": [
            "Images of patients under new ids; sex, age band, scanner and site where the studies tell them."
        ],
    }
    return {f"rai:{name}": value for name, value in told.items() if value}


def _version(number: str) -> str:
    """Return a version of at least three numbers, as Croissant asks."""
    return number + ".0" * max(0, 2 - number.count("."))


def _files_id(cohort: str) -> str:
    return f"files-{cohort}"


def _files(cohort: str) -> Record:
    return {
        "@type": "cr:FileSet",
        "@id": _files_id(cohort),
        "name": _files_id(cohort),
        "description": f"tables of cohort {cohort}",
        "encodingFormat": _PARQUET,
        "includes": f"{TABLES}/{cohort}/*.parquet",
    }


def _records(cohort: str, *, frames: bool) -> Record:
    fields = [_field(cohort, column) for column in table_schema(frames=frames)]
    return {
        "@type": "cr:RecordSet",
        "@id": cohort,
        "name": cohort,
        "description": f"questions of cohort {cohort}, in split {split_of(cohort)}",
        "key": {"@id": f"{cohort}/qa_id"},
        "field": fields,
    }


def _field(cohort: str, column: pa.Field) -> Record:
    kind = column.type
    record: Record = _named(f"{cohort}/{column.name}") | {"description": description_of(column)}
    if pa.types.is_list(kind):
        record["repeated"] = True
        kind = kind.value_type
    if kind == PICTURE:
        return record | _source(cohort, column.name, "sc:ImageObject", path="bytes")
    if pa.types.is_struct(kind):
        inner = [
            _named(f"{cohort}/{column.name}/{member.name}")
            | _source(cohort, column.name, _TYPES[str(member.type)], path=member.name)
            for member in kind
        ]
        return record | {"subField": inner}
    return record | _source(cohort, column.name, _TYPES[str(kind)])


def _named(name: str) -> Record:
    return {"@type": "cr:Field", "@id": name, "name": name}


def _source(cohort: str, column: str, kind: str, *, path: str = "") -> Record:
    """Where the values of a field stand: in a column, or within it by a path."""
    transform = {"transform": {"jsonPath": path}} if path else {}
    source = {"fileSet": {"@id": _files_id(cohort)}, "extract": {"column": column}, **transform}
    return {"dataType": kind, "source": source}
