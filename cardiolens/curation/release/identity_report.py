"""The report on who may be named in a release's text, which a person reads and confirms before it is made.

It lies beside the release, for its owner alone. The confirmation is a digest of all findings, so one more
finding asks again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from cardiolens.base import disk
from cardiolens.base.digest import digest_of
from cardiolens.base.errors import InputError
from cardiolens.curation.release.free_text import Passage, passages
from cardiolens.curation.release.identities import fold, identities
from cardiolens.curation.release.old_ids import OldIds, is_short, old_ids
from cardiolens.curation.release.release_words import Release
from cardiolens.protocol.tasks.catalogue import Catalogue
from cardiolens.protocol.tasks.questions import GivenQuestion
from cardiolens.study.manifest import Study

OLD_ID, SHORT_ID = "old id", "old id, but short"
_AROUND = 60  # characters shown before and after a finding
_DIGITS = 16  # of the confirmation


@dataclass(frozen=True, slots=True)
class Finding:
    """What may identify somebody, with the text around it and the first of its places."""

    kind: str
    found: str
    before: str
    after: str
    file: str
    place: str


def check_identities(
    spec: Release, catalogue: Catalogue, questions: Sequence[GivenQuestion], studies: Mapping[str, Study]
) -> int:
    """Return the number of confirmed findings; InputError where there are others, which a report names.

    Old ids are refused in any case.
    """
    found = findings(passages(spec, catalogue, questions, studies), old_ids(studies))
    if not found:
        return 0
    digest = digest_of([asdict(finding) for finding in found])[:_DIGITS]
    ids = [finding for finding in found if finding.kind == OLD_ID]
    report = spec.out.with_name(f"{spec.out.name}-identities.txt")
    if digest != spec.confirmed or ids:
        _write(report, found, "" if ids else digest)
    if ids:
        raise InputError(
            f"{ids[0].file}, {ids[0].place}: holds the old id of a study, patient or report, as "
            f"{len(ids) - 1} other texts do; {report} has all of them; take them out of the texts"
        )
    if digest != spec.confirmed:
        again = "" if spec.confirmed is None else f"confirmed={spec.confirmed} is of other findings, and "
        raise InputError(
            f"{again}{len(found)} texts may name somebody, e.g. {found[0].file}, {found[0].place} "
            f"({found[0].kind}); read {report}, take out what identifies anybody, and once nothing does, add "
            f"confirmed={digest}"
        )
    return len(found)


def findings(texts: Iterable[Passage], ids: OldIds) -> list[Finding]:
    """Return the findings in texts, each text around a finding once, in order of the places."""
    once: dict[tuple[str, str, str, str], Finding] = {}
    search = cache(lambda text, ours: _search(text, ids, ours=ours))
    for passage in texts:
        for kind, before, found, after in search(passage.text, passage.ours):
            finding = Finding(kind, found, before, after, passage.file, passage.place)
            once.setdefault((kind, before, found, after), finding)
    return list(once.values())


def _search(text: str, ids: OldIds, *, ours: bool) -> list[tuple[str, str, str, str]]:
    """Return kind, text before, finding and text after; old ids are no news in texts of our own."""
    folded = fold(text)
    spans: list[tuple[str, int, int]] = [(name.kind, name.start, name.end) for name in identities(folded)]
    if not ours:
        findings = ((folded[start:end], start, end) for start, end in ids.find(folded))
        spans += [(SHORT_ID if is_short(name) else OLD_ID, start, end) for name, start, end in findings]
    return [
        (kind, folded[max(0, start - _AROUND) : start], folded[start:end], folded[end : end + _AROUND])
        for kind, start, end in sorted(spans, key=lambda span: span[1:])
    ]


def _write(report: Path, findings: Sequence[Finding], digest: str) -> None:
    """Write the report with mode 600; `digest` is empty where nothing can be confirmed."""
    how = (
        f"If none of them identifies anybody, give release the word confirmed={digest}"
        if digest
        else "Old ids cannot be confirmed: take them out of the texts"
    )
    lines = [f"{len(findings)} texts that may identify somebody. {how}.", ""]
    for number, finding in enumerate(findings, start=1):
        lines += [f"{number}. {finding.kind}: {finding.file}, {finding.place}"]
        lines += [f"   {finding.before}[[{finding.found}]]{finding.after}".replace("\n", " "), ""]
    disk.write_private(report, "\n".join(lines).encode("utf-8", "backslashreplace"))
