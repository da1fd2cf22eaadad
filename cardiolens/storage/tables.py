"""The twelve tables of CardioLens: their Arrow schemas, atomic part files, and reading them back.

Every step of the flow reads and writes these tables and nothing else. A table is a folder of Parquet part
files. Parts are written atomically: under a temporary name, fsynced, then renamed.
"""

import errno
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from cardiolens.base.errors import InputError, RunError

SCHEMA_VERSION = "1"

Result = TypeVar("Result")

FRAME = "\ufffc"  # marks the place of a frame in a message

# The status of a request as planned, and the statuses of a completion that end a request.
PLANNED = "planned"
OVERFLOW = "overflow"
ILLEGAL_SELECTION = "illegal_selection"  # a reader that chooses asked for no frame that there is
FINAL = ("ok", "refused", ILLEGAL_SELECTION)


def _schema(name: str, *fields: tuple[str, pa.DataType]) -> pa.Schema:
    return pa.schema(list(fields), metadata={"table": name, "version": SCHEMA_VERSION})


_STRINGS = pa.list_(pa.string())
_INSTANT = pa.timestamp("us", tz="UTC")

VOLUMES = _schema(
    "volumes",
    ("study_id", pa.string()),
    ("patient_id", pa.string()),
    ("cohort", _STRINGS),
    ("species", pa.string()),
    ("volume_id", pa.string()),
    ("sequence", pa.string()),
    ("view", pa.string()),
    ("n_slices", pa.int32()),
    ("n_phases", pa.int32()),
    ("height", pa.int32()),  # of a displayed frame, pixels
    ("width", pa.int32()),
    ("spacing_mm", pa.list_(pa.float64())),  # of the stored volume: i, j, slice
    ("spatial_order", pa.string()),  # as stored; ranks in `frames` are canonical
    ("key_layers", pa.list_(pa.int32())),  # canonical ranks: basal, mid, apical; fewer if fewer slices
    ("ed_phase", pa.int32()),
    ("es_phase", pa.int32()),
    ("t_on", pa.int32()),  # perfusion only, else null
    ("t_peak", pa.int32()),
    ("layout_source", pa.string()),  # declared | inferred
    ("window_low", pa.float64()),  # intensity shown as 0 and as 255
    ("window_high", pa.float64()),
    ("source_sha256", pa.string()),  # of the NIfTI file
    ("part", pa.string()),  # file name of the frames part that holds the volume
    ("row_group", pa.int32()),  # of that part
)

FRAMES = _schema(
    "frames",
    ("study_id", pa.string()),
    ("volume_id", pa.string()),
    ("idx", pa.int32()),  # canonical index = slice * n_phases + phase
    ("slice", pa.int32()),  # canonical rank, 0 = most basal
    ("phase", pa.int32()),
    ("height", pa.int32()),
    ("width", pa.int32()),
    ("channels", pa.int32()),
    ("pixels", pa.binary()),  # uint8, row by row as displayed
    ("digest", pa.string()),  # of shape and pixels
)

OPTION = pa.struct([("key", pa.string()), ("text", pa.string())])

QUESTIONS = _schema(
    "questions",
    ("qa_id", pa.string()),
    ("study_id", pa.string()),
    ("patient_id", pa.string()),
    ("tier", pa.int32()),
    ("subtask", pa.string()),
    ("sequence", pa.string()),
    ("question", pa.string()),
    ("answer_type", pa.string()),  # single | ordinal | multi | report
    ("options", pa.list_(OPTION)),
    ("exclusive", _STRINGS),
    ("answer", _STRINGS),
    ("reference", pa.string()),  # JSON of a report's {fields, findings, impression}, else null
    ("parent", pa.string()),
    ("origin", pa.string()),
    ("protocol", pa.string()),
)

QUOTE = pa.struct([("text", pa.string()), ("section", pa.string())])  # section: "" where it is not known

EVIDENCE = _schema(
    "evidence",
    ("qa_id", pa.string()),
    ("study_id", pa.string()),
    ("origin", pa.string()),  # report | mask | reader | phantom
    ("quotes", pa.list_(QUOTE)),  # of the report, on which the answer rests
    ("verification", pa.string()),  # JSON, as the question's record has it
)

FRAME_REF = pa.struct([("volume_id", pa.string()), ("idx", pa.int32())])

REQUESTS = _schema(
    "requests",
    ("arm_id", pa.string()),
    ("qa_id", pa.string()),
    ("study_id", pa.string()),
    ("frames_study_id", pa.string()),  # another patient's in a control; null without frames
    ("subtask", pa.string()),
    ("frames", pa.list_(FRAME_REF)),  # in the order shown
    ("system", pa.string()),
    ("prompt", pa.string()),  # user message; U+FFFC marks the place of each frame
    ("template", pa.string()),  # id@hash of the prompt template
    ("answer_format", pa.string()),  # letters | json | choice | last_line
    ("answer_type", pa.string()),
    ("option_keys", _STRINGS),  # as displayed: the option permutation
    ("exclusive", _STRINGS),
    ("max_tokens", pa.int32()),
    ("stage", pa.int32()),
    ("replicate", pa.int32()),
    ("flags", _STRINGS),  # short, degraded, substituted:<view>, no_temporal_evidence, estimated_tokens
    ("status", pa.string()),  # planned | overflow | skipped: <why>
    ("predicted_tokens", pa.int32()),
    ("request_key", pa.string()),
)

STAGES = _schema(
    "stages",
    ("request_key", pa.string()),  # of the chain's row in `requests`
    ("stage", pa.int32()),  # from 0; all of a chain stand here, the last one too
    ("prompt", pa.string()),  # with marks where earlier replies will stand
    ("max_tokens", pa.int32()),
    ("stage_key", pa.string()),  # of stage 0 and of samples its request_key; of a later one it goes into it
    ("seed", pa.int64()),  # of a sample, with which it is drawn; null in other chains
    ("temperature", pa.float64()),  # of a sample; null in other chains
)

OFFERED_FRAME = pa.struct(
    [("name", pa.string()), ("volume_id", pa.string()), ("idx", pa.int32()), ("caption", pa.string())]
)

OFFERS = _schema(
    "offers",
    ("offer_key", pa.string()),  # digest of the frames on offer
    ("frames", pa.list_(OFFERED_FRAME)),  # that a reader may ask for, in the order in which they are shown
)

CHOICES = _schema(
    "choices",
    ("request_key", pa.string()),  # of the chain's row in `requests`
    ("offer_key", pa.string()),  # of its offer
    ("budget", pa.int32()),  # most frames that are shown
    ("rounds", pa.int32()),  # most requests for frames
    ("first", pa.string()),  # prompt of the first request for frames; all prompts have marks
    ("further", pa.string()),  # of a later one, after the frames shown by then
    ("answer_one", pa.string()),  # the question, after one frame
    ("answer_many", pa.string()),  # the same after several
    ("ask_max_tokens", pa.int32()),  # of a reply that names frames
    ("max_tokens", pa.int32()),  # of the answer
    ("bound", pa.bool_()),  # whether decoding enforces legal names
    ("stage_key", pa.string()),  # goes into the request_key of every stage
)

SEEN = _schema(
    "seen",
    ("request_key", pa.string()),  # of the chain's row in `requests`
    ("stage", pa.int32()),  # from 0
    ("step_key", pa.string()),  # request_key of the stage
    ("frames", pa.list_(FRAME_REF)),  # in the order shown; null: those of the chain's row
    ("prompt", pa.string()),  # as it was sent
    ("reply", pa.string()),  # null where there is none yet
    ("not_shown", pa.int32()),  # names in the reply that were no frame to show; null in other stages
    ("status", pa.string()),  # of the completion; null where there is none yet
)

COMPLETIONS = _schema(
    "completions",
    ("request_key", pa.string()),
    ("text", pa.string()),  # of the reply; of several samples one line of JSON each
    ("finish_reason", pa.string()),  # stop, length, the engine's own word; samples: of several
    ("option_logprobs", pa.map_(pa.string(), pa.float64())),  # by letter displayed; docs/statistics.md
    ("prompt_tokens", pa.int32()),
    ("cached_tokens", pa.int32()),
    ("output_tokens", pa.int32()),
    ("seconds", pa.float64()),
    ("node", pa.string()),
    ("attempt", pa.int32()),
    ("status", pa.string()),  # ok | refused | illegal_selection | engine_error
    ("error", pa.string()),
    ("written_at", _INSTANT),
)

VERDICTS = _schema(
    "verdicts",
    ("arm_id", pa.string()),
    ("qa_id", pa.string()),
    ("channel", pa.string()),  # answer | fields | text
    ("study_id", pa.string()),
    ("patient_id", pa.string()),
    ("tier", pa.int32()),
    ("sequence", pa.string()),
    ("subtask", pa.string()),
    ("answer_type", pa.string()),
    ("request_key", pa.string()),
    ("status", pa.string()),  # judged | overflow | skipped: <why> | engine_error | missing
    (
        "parse_status",
        pa.string(),
    ),  # null unless judged: ok | inconsistent | parse_error | refusal | truncated | illegal_selection
    ("rule", pa.string()),  # the parsing rule that found the answer; illegal_selection
    ("parsed", _STRINGS),
    ("gold", _STRINGS),
    ("correct", pa.bool_()),
    ("counts", pa.map_(pa.string(), pa.float64())),  # tp, fp, fn, rank_error, ...
)

SCORES = _schema(
    "scores",
    ("metric", pa.string()),
    ("scope", pa.string()),  # tier:1 | sequence:cine | subtask:C10
    ("arm_id", pa.string()),
    ("versus_arm_id", pa.string()),
    ("value", pa.float64()),  # percent; NaN where undefined
    ("low", pa.float64()),
    ("high", pa.float64()),
    ("n_items", pa.int32()),
    ("n_patients", pa.int32()),
    ("n_parse_error", pa.int32()),
    ("n_refusal", pa.int32()),
    ("n_same_request", pa.int32()),
    ("method", pa.string()),
)

# Errors of pyarrow for a truncated or changed file, whose sizes it trusts before it checks them.
UNREADABLE = (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError, MemoryError)

_ROW_GROUP = 2**16  # rows from which blocks are written as a row group


def empty(schema: pa.Schema) -> pa.Table:
    """A table of the schema without rows."""
    return schema.empty_table()


def from_rows(rows: Sequence[dict[str, object]], schema: pa.Schema) -> pa.Table:
    """A table of the schema from rows; a missing column is null, an unknown one a programming error."""
    assert all(set(row) <= set(schema.names) for row in rows), "row with a column outside its schema"
    return pa.Table.from_pylist(list(rows), schema=schema)


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to; on success it is fsynced and renamed to `path`.

    RunError where the file cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with temporary.open("rb") as handle:
            os.fsync(handle.fileno())
        temporary.replace(path)
        _fsync_folder(path.parent)
    except OSError as error:
        raise _not_written(path, error) from error
    finally:
        if temporary.exists():
            temporary.unlink()


def make_folder(path: Path) -> None:
    """Create a folder and its parents; RunError if that fails."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _not_written(path, error) from error


def _not_written(path: Path, error: OSError) -> RunError:
    reason = error.strerror or error
    return RunError(f"{path}: cannot be written ({reason}); free space or check permissions, then run again")


def _fsync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with atomic(path) as temporary:
        temporary.write_text(text)


def part_name() -> str:
    """A part file name that sorts by time and cannot collide between writers."""
    return f"part-{time.time_ns():020d}-{secrets.token_hex(4)}.parquet"


def write_part(folder: Path, table: pa.Table, schema: pa.Schema, name: str | None = None) -> Path:
    """Write a table, cast to the schema, as one part of a folder; returns the path of the part."""
    path = folder / (name or part_name())
    with atomic(path) as temporary:
        pq.write_table(table.cast(schema), temporary, compression="zstd", write_page_checksum=True)
    return path


def replace(folder: Path, table: pa.Table, schema: pa.Schema) -> None:
    """Replace the content of a folder by a table; old parts are deleted after the new one is complete."""
    replace_by(folder, [table], schema)


def replace_by(folder: Path, blocks: Iterable[pa.Table], schema: pa.Schema) -> None:
    """Replace the content of a folder by one part of several blocks, of which few are in memory at a time."""
    old = parts(folder)
    with (
        atomic(folder / part_name()) as temporary,
        pq.ParquetWriter(temporary, schema, compression="zstd", write_page_checksum=True) as writer,
    ):
        for rows in _row_groups(blocks, schema):
            writer.write_table(rows)
    for path in old:
        path.unlink(missing_ok=True)


def _row_groups(blocks: Iterable[pa.Table], schema: pa.Schema) -> Iterator[pa.Table]:
    """Cast blocks to a schema and concatenate small ones."""
    waiting = [schema.empty_table()]
    for block in blocks:
        waiting.append(block.cast(schema))
        if sum(table.num_rows for table in waiting) >= _ROW_GROUP:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


def parts(folder: Path) -> list[Path]:
    """The part files of a table in name order; empty if the folder does not exist."""
    return sorted(folder.glob("part-*.parquet"))


def read(folder: Path, schema: pa.Schema, columns: Sequence[str] | None = None) -> pa.Table:
    """Read all parts of a table, or some of its columns; an empty table if there are no parts."""
    selected = schema if columns is None else pa.schema([schema.field(name) for name in columns])
    return from_parts(folder, schema, columns, lambda parts: concat(parts, selected))


def from_parts(
    folder: Path,
    schema: pa.Schema,
    columns: Sequence[str] | None,
    make: Callable[[Iterator[pa.Table]], Result],
) -> Result:
    """Return `make(parts)` for an iterator over the parts of a table.

    If a listed part disappears because another process compacts the folder, start again.
    """
    while True:  # each further listing has lost a part
        paths = parts(folder)
        try:
            return make(read_part(path, schema, columns) for path in paths)
        except InputError as error:
            if not isinstance(error.__cause__, FileNotFoundError) or set(paths) <= set(parts(folder)):
                raise


def count_rows(folder: Path) -> int:
    """The number of rows of a table, from part footers; a part that disappears counts zero."""
    return sum(count_part(path) for path in parts(folder))


def count_part(path: Path) -> int:
    """The number of rows of a part, from its footer; zero if it has disappeared."""
    try:
        with open_part(path) as part:
            return int(part.metadata.num_rows)
    except FileNotFoundError:
        return 0
    except UNREADABLE as error:
        raise _not_whole(path, error) from error


def open_part(path: Path) -> pq.ParquetFile:
    """Open a part; reading a page whose bytes changed on disk raises OSError.

    OSError also for anything but a regular file: opening a pipe would block.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is no ordinary file", str(path))
    return pq.ParquetFile(path, page_checksum_verification=True)


def read_blocks(folder: Path, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield a table a row group at a time; InputError as for `read_part`."""
    for path in parts(folder):
        try:
            with open_part(path) as part:
                check_columns(path, part.schema_arrow, schema)
                for group in range(part.num_row_groups):
                    rows = part.read_row_group(group)
                    rows.validate(full=True)
                    yield rows
        except UNREADABLE as error:
            raise _not_whole(path, error) from error


def _not_whole(path: Path, error: Exception) -> InputError:
    return InputError(f"{path}: not a whole Parquet file ({error}); delete it and run again")


def read_part(path: Path, schema: pa.Schema, columns: Sequence[str] | None = None) -> pa.Table:
    """Read one part file; InputError unless it is whole and has the columns of the schema."""
    try:
        with open_part(path) as part:
            check_columns(path, part.schema_arrow, schema)
            table = part.read(columns=None if columns is None else list(columns))
            table.validate(full=True)  # text that is no UTF-8 would fail much later
            return table
    except UNREADABLE as error:
        raise _not_whole(path, error) from error


def scan(
    folder: Path,
    schema: pa.Schema,
    columns: Sequence[str],
    where: ds.Expression | None = None,
    *,
    encoded: Sequence[str] = (),
) -> Iterator[pa.RecordBatch]:
    """Yield the rows that match a filter, a batch at a time; memory does not grow with the table.

    Parts and row groups whose statistics rule the filter out are not read. Columns in `encoded` come as
    dictionaries, as a part holds them. InputError as for `read_part`.
    """
    paths = parts(folder)
    for path in paths:
        if not path.is_file():
            raise InputError(f"{path}: it is no ordinary file; delete it and run again")
    if not paths:
        return
    form = ds.ParquetFileFormat(
        read_options=ds.ParquetReadOptions(dictionary_columns=list(encoded)),
        default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True),
    )
    try:
        dataset = ds.dataset([str(path) for path in paths], format=form)
        for fragment in dataset.get_fragments():
            _check_decoded(Path(fragment.path), fragment.physical_schema, schema)
        for batch in dataset.to_batches(columns=list(columns), filter=where, batch_readahead=4):
            batch.validate(full=True)
            yield batch
    except UNREADABLE as error:
        raise InputError(f"{folder}: holds a part that is not whole ({error}); run again") from error


def query(folder: Path, schema: pa.Schema, columns: Sequence[str], where: ds.Expression) -> pa.Table:
    """Read the rows that match a filter, as `scan` does."""
    selected = pa.schema([schema.field(name) for name in columns])
    return pa.Table.from_batches(scan(folder, schema, columns, where), selected.remove_metadata())


def _check_decoded(path: Path, actual: pa.Schema, schema: pa.Schema) -> None:
    """Raise InputError unless a part has the columns of the schema, dictionaries counting as their values."""
    fields = [
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
        for field in actual
    ]
    check_columns(path, pa.schema(fields), schema)


def check_columns(path: Path, actual: pa.Schema, schema: pa.Schema) -> None:
    """Raise InputError unless a part has the columns of the schema."""
    if not actual.equals(schema, check_metadata=False):
        raise InputError(
            f"{path}: its columns are not those of table {schema.metadata[b'table'].decode()!r} "
            f"version {SCHEMA_VERSION}; another version of CardioLens wrote it: use a new store"
        )


def concat(tables: Iterable[pa.Table], schema: pa.Schema) -> pa.Table:
    """Concatenate tables of one schema; an empty table if there are none."""
    tables = list(tables)
    return pa.concat_tables(tables) if tables else schema.empty_table()
