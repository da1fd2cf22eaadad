"""The verbs that write, on the smallest data that lets each of them write everything that it can."""

import importlib
import os
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

from at_every_write.one_process import replace_in, run_in_one_process
from at_every_write.people import decide_on_imports, decide_on_questions, read_replies
from at_every_write.queue import wait_in_file
from at_every_write.server import AnsweringServer
from at_every_write.verb import Verb

PHANTOM = ("dataset=phantom_ci", "dataset.phantom.seed=4711")
SMALL = ("limit=1", "budget=[8]", "selector=[clinical]", "prompt=[standard]", "tracker=none")
SMALL = (
    *SMALL,
    "subtask=[C01,C03,L01]",
    "statistics.resamples=50",
    "statistics.min_n=1",
    "name=small",
    "stream.flush_seconds=0.1",
)
CASES = ("+experiment=medthinkvqa", "selector=[uniform]", "tracker=none", "name=cases")
CASES = (*CASES, "limit=3", "statistics.resamples=50", "store=case_store", "stream.flush_seconds=0.1")
REPORTS = ("reports=text/reports", "studies=imported/studies", "links=links.jsonl")
RUN = ("outputs/*/verdicts/*", "outputs/*/scores/*", "outputs/*/analyses.json", "outputs/*/index.html")
ANSWERS, CASE_ANSWERS = "store/completions/*/*.parquet", "case_store/completions/*/*.parquet"
TIMES = frozenset({"at", "seconds", "made", "began", "written_at"})


def called(name: str, *words: str) -> Callable[[], int]:
    """A verb with words of the command line, as a process of its own would run it."""

    def run() -> int:
        run_in_one_process()
        sys.argv = [f"cardiolens {name}", *words]
        return int(importlib.import_module(f"cardiolens.commands.{name}").main())

    return run


def submitted(*words: str) -> Callable[[], int]:
    """A sweep whose jobs wait in a file."""

    def run() -> int:
        wait_in_file()
        return called("submit", *words, "cluster=slurm")()

    return run


def script(name: str, *words: str) -> Callable[[], int]:
    """A script of jobs/ with words of the command line."""

    def run() -> int:
        run_in_one_process()
        return int(importlib.import_module(f"jobs.{name}").main([*words]))

    return run


def in_turn(*parts: Callable[[], int]) -> Callable[[], int]:
    return lambda: next((code for part in parts if (code := part())), 0)


def of_one_run(name: str, *words: str) -> Callable[[], int]:
    """A verb of the one run in the folder."""

    def run() -> int:
        (folder,) = Path("outputs").iterdir()
        return called(name, f"run={folder}", *words)()

    return run


def drawn_alike(run: Callable[[], int]) -> Callable[[], int]:
    """A release whose random numbers are always the same."""

    def alike() -> int:
        module = importlib.import_module("cardiolens.curation.release.make")
        secrets = SimpleNamespace(token_hex=lambda n: "0" * 2 * n)
        replace_in(module, secrets=secrets, uuid=SimpleNamespace(uuid4=lambda: "7" * 32))
        return run()

    return alike


def studies(place: Path) -> tuple[str, ...]:
    """Words of the studies in the base: read in place, because a copy would be prepared again."""
    return (
        "dataset=real",
        f"dataset.studies={place}/data/studies",
        f"dataset.questions={place}/data/questions.jsonl",
    )


def base(place: Path) -> Sequence[Callable[[], int]]:
    """What all verbs start from, in turn: studies, shards, an export, reports, an import, drafts."""
    return (
        script("make_phantom", *PHANTOM, "dataset.phantom.n_sampled=2", "out=data", "masks=true"),
        called("prepare", *studies(place), "store=store"),
        script(
            "make_phantom",
            *PHANTOM,
            "dataset.phantom.n_sampled=1",
            "format=dicom",
            "vendor=siemens",
            "out=dicom",
        ),
        script("make_phantom", *PHANTOM, "dataset.phantom.n_sampled=1", "format=acdc", "out=set"),
        script("make_phantom", *PHANTOM, "dataset.phantom.n_sampled=1", "format=text", "out=text"),
        called("ingest", "source=dicom/export", "out=imported", "key=ids.key", "links=links.jsonl"),
        called("questions", *REPORTS, "out=drafts"),
        _make_cases,
    )


def _make_cases() -> int:
    from cardiolens.benchmarks.benchmark import read_benchmark
    from cardiolens.benchmarks.case_group import prepare_cases
    from cardiolens.benchmarks.medthinkvqa import PROTOCOL, source_of
    from cardiolens.study.cohort import Cohort, write_cohort
    from tests.support.cases.example_cases import make_cases

    store = Path("case_store").absolute()
    make_cases(Path("cases"), 3, 1)
    read = read_benchmark(source_of(Path("cases").absolute()), PROTOCOL)
    outcomes = prepare_cases(store, "part-0.parquet", read.source, read.cases)
    read.write(store / "medthinkvqa.jsonl", PROTOCOL)
    records = {outcome.name: outcome.record for outcome in outcomes}
    write_cohort(store, Cohort(window_pct=(1, 99), studies=records, failed={}))
    return 0


def _reviewed(served: Callable[[], int]) -> Callable[[], int]:
    """A review page with people at it, all in one process."""

    def run() -> int:
        people = threading.Thread(target=decide_on_questions, args=(os.getpid(), Path.cwd()))
        people.start()
        return served()

    return run


def verbs(place: Path, server: AnsweringServer) -> tuple[Verb, ...]:
    """Every verb that writes, on the base in `place`; `server` answers for one of the models."""
    store, own = ("store/**/*",), studies(place)
    small = (*SMALL, *own, "store=store")
    cases = (*CASES, f"dataset.source={place}/cases")
    http = (f"model.served.http.base_url=http://127.0.0.1:{server.port}/v1", "~model.served.source")
    http = (*http, "+model.served.max_num_seqs=2", "stream.flush_rows=2")
    serve = ("questions=drafts/questions.jsonl", "studies=imported/studies", "out=review", "port=0")
    serve = (*serve, "mode=verify", "readers=[anna,berta]")
    release = (
        f"questions={place}/data/questions.jsonl",
        f"studies={place}/data/studies",
        "out=released",
        "name=ours",
    )
    release = (*release, "licence=internal", "links=links.jsonl", "allow_unverified=true")
    swept = called("sweep", *small, "model=[uniform,noisy]")
    return (
        Verb("prepare", called("prepare", *own, "store=store"), ("store/**/*",), (), TIMES),
        Verb("sweep", swept, (*RUN, ANSWERS), store, TIMES, acknowledged=ANSWERS),
        Verb(
            "submit",
            submitted(*small, "model=[uniform,noisy]"),
            ("queue.jsonl", "outputs/*/*.json", "outputs/*/slurm/*", "outputs/*/requests/**/*"),
            store,
            TIMES | {"made_in", "store", "outputs"},
        ),
        Verb("judge", of_one_run("judge"), RUN, store, TIMES, made_before=swept),
        Verb("page", of_one_run("report"), RUN, store, TIMES, made_before=swept),
        Verb(
            "samples",
            called("sweep", *small, "model=[noisy]", "prompt=[majority]"),
            (*RUN, ANSWERS),
            store,
            TIMES,
            acknowledged=ANSWERS,
        ),
        Verb(
            "chains",
            called("sweep", *cases, "model=[uniform]", "prompt=[twi_self]"),
            (*RUN, CASE_ANSWERS),
            ("case_store/**/*",),
            TIMES,
            acknowledged=CASE_ANSWERS,
        ),
        Verb(
            "http",
            called("sweep", *small, "model=[served]", *http),
            (*RUN, ANSWERS),
            store,
            TIMES,
            acknowledged=ANSWERS,
            asks=server.take_asks,
            asked_twice_at_most=2 + 2,  # in flight, and answered but not on disk
        ),
        Verb(
            "compact",
            called("store", "compact", "store=store"),
            (ANSWERS,),
            store,
            TIMES,
            made_before=called("sweep", *small, "model=[noisy]", "subtask=[]", "stream.flush_rows=1"),
            acknowledged=ANSWERS,
        ),
        Verb(
            "ingest",
            called("ingest", "source=dicom/export", "out=made", "key=ids.key", "links=made.jsonl"),
            ("made/**/*", "made.jsonl"),
            ("dicom/export/**/*", "ids.key"),
            TIMES,
        ),
        Verb(
            "ingest a set",
            called("ingest", "source=set", "layout=acdc", "out=made", "key=ids.key"),
            ("made/**/*",),
            ("set/**/*", "ids.key"),
            TIMES,
        ),
        Verb(
            "questions",
            called("questions", *REPORTS, "out=made", f"masks={place}/data/studies", "labels=phantom"),
            ("made/*.jsonl", "made/counts.html"),
            ("text/**/*", "imported/**/*", "links.jsonl"),
            TIMES,
        ),
        Verb(
            "confirm",
            called("confirm", "out=imported"),
            ("imported.decisions.jsonl",),
            ("imported/**/*",),
            TIMES | {"id"},
            meanwhile=decide_on_imports,
            decisions=6,
        ),
        Verb(
            "review",
            called("review", *serve),
            ("review/reviews.jsonl",),
            ("drafts/**/*", "imported/**/*", "review/**/*"),
            TIMES | {"id"},
            meanwhile=decide_on_questions,
            decisions=12,
        ),
        Verb(
            "review export",
            called("review", "export", "out=review"),
            ("review/*.json*",),
            ("drafts/**/*", "imported/**/*", "review/**/*"),
            TIMES,
            made_before=_reviewed(called("review", *serve)),
            ends_with=1,  # two people have not decided on enough
        ),
        Verb(
            "audit",
            of_one_run("audit", "port=0", "replies=20"),
            ("outputs/*/audit.jsonl", "outputs/*/audit_sample.json", "outputs/*/audit.json"),
            store,
            TIMES,
            made_before=called("sweep", *small, "model=[noisy]", "subtask=[]"),
            meanwhile=read_replies,
            decisions=6,
        ),
        Verb(
            "release",
            drawn_alike(called("release", *release)),
            ("released/**/*", "links.jsonl"),
            (),
            TIMES,
            done_before=2,
        ),
    )
