"""Benchmark of two joins of a run of the paper's size: this package's own, and the same in DuckDB.

    pip install duckdb; python -m bench.joins [--patients 670] [--memory 1GB]

What is missing (requests without a final completion), and completions laid beside the requests that they
answer, for one model with 24 arms. Each is done in a process of its own, whose seconds and peak memory are
printed. DuckDB is no dependency of the package: lab/decisions/0011-joins-by-hand.md says why.
"""

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa

from bench.paper_size import specification, write
from cardiolens.inference.plan.missing import missing
from cardiolens.score.run_results.stored_replies import align_completions
from cardiolens.storage.places import Run, Store

REPEATS = 3


def own_missing(requests: Path, completions: Path, memory: str) -> int:
    return missing(requests, completions, 3).unique


def own_aligned(requests: Path, completions: Path, memory: str) -> int:
    replies = align_completions(requests, completions)
    return sum(of_block.num_rows for _, of_block in replies.blocks())


def duckdb_missing(requests: Path, completions: Path, memory: str) -> int:
    rows = _query(
        f"""
        with planned as (
            select request_key, min(filename) as part, arg_min(file_row_number, filename) as row,
                   any_value(frames_study_id) as study_id
            from read_parquet('{requests}/*.parquet', filename=true, file_row_number=true)
            where status = 'planned' group by request_key),
        tried as (
            select request_key, bool_or(status <> 'engine_error') as is_final, count(*) as tries
            from read_parquet('{completions}/*.parquet') group by request_key)
        select study_id, part, row, coalesce(tries, 0) + 1 as attempt, coalesce(is_final, false) as is_final
        from planned left join tried using (request_key) order by part, row
        """,
        memory,
    )
    return sum(batch.num_rows for batch in rows)


def duckdb_aligned(requests: Path, completions: Path, memory: str) -> int:
    rows = _query(
        f"""
        select r.filename, r.file_row_number, r.arm_id, r.qa_id, r.option_keys, r.status, r.request_key,
               c.status as reply_status, c.text, c.finish_reason, c.option_logprobs, c.written_at
        from read_parquet('{requests}/*.parquet', filename=true, file_row_number=true) r
        left join read_parquet('{completions}/*.parquet') c using (request_key)
        order by r.filename, r.file_row_number
        """,
        memory,
    )
    return sum(batch.num_rows for batch in rows)


def _query(sql: str, memory: str) -> pa.RecordBatchReader:
    import duckdb

    connection = duckdb.connect(config={"memory_limit": memory, "preserve_insertion_order": False})
    return connection.sql(sql).to_arrow_reader(2**16)


def measure(way: Callable[[Path, Path, str], int], requests: Path, completions: Path, memory: str) -> str:
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        rows = way(requests, completions, memory)
        seconds.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return (
        f"{way.__name__:16} {rows:9,} rows  {min(seconds):6.2f} s (least of {REPEATS})  peak {peak:.2f} GiB"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--patients", type=int, default=670)
    parser.add_argument("--memory", default="1GB", help="memory_limit of DuckDB")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, 1, options.patients, 100)
        (model,) = (model.name for model in specification(folder, 1, 100).model)
        requests = Run(folder / "run").requests(model)
        completions = Store(folder / "store").completions(model)
        for way in (own_missing, duckdb_missing, own_aligned, duckdb_aligned):
            with ProcessPoolExecutor(1, get_context("spawn")) as process:
                line = process.submit(measure, way, requests, completions, options.memory).result()
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
