"""`python -m cardiolens.ingest source=... out=...`: an export of DICOM or NIfTI → studies, with proposals."""

import sys


def main() -> int:
    """Import the export that the command line names."""
    from cardiolens.config.compose import read_ingest_spec
    from cardiolens.errors import InputError, RunError
    from cardiolens.steps.ingest import ingest
    from cardiolens.terminal.verb import begin, tell

    begin()
    try:
        return ingest(read_ingest_spec(sys.argv[1:]))
    except (InputError, RunError) as error:
        return tell(error)


if __name__ == "__main__":
    sys.exit(main())
