"""`python -m cardiolens.ingest source=... out=...`: an export of DICOM or NIfTI → studies with proposals.

`init out=...` writes skeletons of study.json and questions.jsonl for NIfTI files instead.
"""

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Import the export that the command line names, or with `init` write skeletons."""
    from cardiolens.base.errors import InputError, RunError
    from cardiolens.commands.command import begin, tell
    from cardiolens.config.command_words import read_words
    from cardiolens.config.compose import read_ingest_spec
    from cardiolens.curation.ingest.import_run import ingest
    from cardiolens.curation.ingest.manifest_draft import Words, write_skeletons

    begin()
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        if words[:1] == ["init"]:
            return write_skeletons(read_words(Words, words[1:]).out)
        return ingest(read_ingest_spec(words))
    except (InputError, RunError) as error:
        return tell(error)


if __name__ == "__main__":
    sys.exit(main())
