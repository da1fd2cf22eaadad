"""The GPU bench's reading of what a part noted and of what vLLM wrote; no engine is started."""

import json
import sys
import time
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench import gpu
from bench.on_gpu import busy, engine
from bench.on_gpu.busy import Gpus
from bench.on_gpu.engine import Marks, fitting, parts_of, settings_of
from bench.on_gpu.models import SIZES, words_of
from bench.on_gpu.results import Part, Results
from cardiolens.config.compose import read_spec

LOG = """\
(Worker_TP0 pid=7) INFO 11-23 03:23:33 [runner.py:5150] Model loading took 15.5 GiB memory and 12.25 seconds
(Worker_TP1 pid=8) INFO 11-23 03:23:34 [runner.py:5150] Model loading took 15.5 GiB memory and 13.5 seconds
(Worker_TP0 pid=7) INFO 11-23 03:23:50 [monitor.py:80] torch.compile took 21.30 s in total
(Worker_TP0 pid=7) INFO 11-23 03:24:01 [runner.py:6582] Graph capturing finished in 9 secs, took 0.61 GiB
(Core pid=6) INFO 11-23 03:24:02 [a.py:3] init engine (profile, create kv cache, warmup model) took 35.12 s
"""


def noted(folder: Path, kind: str) -> Marks:
    """A part that asked from second 50 on and got three answers of 100 prompt tokens in two seconds."""
    marks = Marks(folder / kind)
    settings = {"max_num_seqs": 128, "max_num_batched_tokens": 16384 if kind == "stream" else 8192}
    more = {"planned": {"requests": 4}, "engine": {"parts": parts_of(LOG), "settings": settings}}
    moments = [("began", 0), ("imported", 3), ("planned", 5), ("engine", 45), ("first answer", 47)]
    lines = [{"mark": name, "at": at, **more.get(name, {})} for name, at in moments]
    lines.append({"mark": "dropped", "at": 40, "names": ["an_option"]})
    lines.append({"mark": "first ask", "at": 50})
    for number in (1, 2, 3):
        counts = {"prompt": 100, "cached": 60, "output": 1, "encoded": 11, "distinct": 10}
        lines.append({"mark": "answer", "at": 50 + number * 2 / 3, **counts})
    if kind == "bare":
        lines = [line for line in lines if line["mark"] != "answer"]
        lines.append({"mark": "ended", "at": 53, "ok": 3, "failed": 0, "prompt": 300, "cached": 180})
    (folder / kind).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return marks


def test_parts_of_a_start_are_those_of_the_slowest_process():
    parts = {"weights": 13.5, "compile": 21.3, "CUDA graphs": 9.0, "profile, cache, warm-up": 35.12}
    assert parts_of(LOG) == parts
    assert parts_of("nothing of it") == {}


def test_rates_count_from_the_first_ask_to_the_last_answer_also_of_a_part_that_was_cut_off(tmp_path: Path):
    part = Part("stream", "7b", 1, 1)
    assert part.read(noted(tmp_path, "stream").read()) == (50, 52)
    assert (part.answered, part.requests, part.rate) == (3, 4, 1.5)
    assert (part.encoded, part.computed_tokens) == (1.1, 120)
    assert part.start["engine"] == 40
    assert part.start["weights"] == 13.5
    assert part.notes == ["dropped: an_option, which this vLLM does not have"]


def test_a_part_that_never_asked_has_no_rate(tmp_path: Path):
    marks = Marks(tmp_path / "marks")
    assert marks.read() == []
    marks.note("began")
    part = Part("stream", "7b", 1, 1)
    assert part.read(marks.read()) is None
    assert part.rate is None


def test_the_table_compares_pairs_and_names_settings_that_differ(tmp_path: Path):
    results = Results(
        {"gpus": [], "versions": "vllm 0"}, not_run=["tensor parallel 2: there are no two GPUs"]
    )
    for kind in ("stream", "bare"):
        part = Part(kind, "7b", 1, 1)
        part.read(noted(tmp_path, kind).read())
        results.parts.append(part)
    table = results.to_markdown()
    assert "| 7b TP 1, pair 1 | 1.50 | max_num_batched_tokens 16384 and 8192 |" in table
    assert "* tensor parallel 2: there are no two GPUs" in table
    assert json.loads(json.dumps(results.to_json()))["ratios"] == [{"pair": "7b TP 1, pair 1", "ratio": 1.5}]


def test_options_that_this_vllm_lacks_are_dropped_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(engine, "known_options", lambda: frozenset({"model"}))
    marks = Marks(tmp_path / "marks")
    assert fitting({"model": "m", "of_a_later_one": 3}, marks) == {"model": "m"}
    assert capsys.readouterr().out == "dropped: this vLLM has no option of_a_later_one (it would be 3)\n"
    assert marks.read()[0]["names"] == ["of_a_later_one"]


def test_settings_are_numbers_words_or_left_out():
    config = SimpleNamespace(
        scheduler_config=SimpleNamespace(max_num_seqs=4, async_scheduling=False),
        cache_config=SimpleNamespace(block_size=16),
        model_config=SimpleNamespace(dtype=float),
        parallel_config=SimpleNamespace(),
    )
    found = settings_of(config)
    assert found == {"max_num_seqs": 4, "async_scheduling": False, "block_size": 16, "dtype": str(float)}


@pytest.mark.parametrize("rehearse", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_a_size_is_served_by_its_entry_of_the_catalogue(size: str, rehearse: bool, tmp_path: Path):
    words = words_of(size, tmp_path, 2, rehearse=rehearse)
    (model,) = read_spec(["+experiment=demo", "tracker=none", *words]).model
    assert (model.name, model.has_random_weights, model.source) == (SIZES[size].entry, True, str(tmp_path))
    assert (model.tensor_parallel, model.replicas, model.revision) == (2, 1, None)


def bench(folder: Path, seconds: float) -> gpu.Bench:
    """A rehearsal with so many seconds left."""
    words = Namespace(rehearse=True, sizes=["7b"], studies=None, out=folder / "out")
    gpus = Gpus()
    return gpu.Bench(words, gpus, time.monotonic() + gpu.RESERVE + seconds, folder)


@pytest.fixture(autouse=True)
def _no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise OSError("no driver")

    monkeypatch.setattr(busy, "_nvml", none)


@pytest.mark.parametrize(
    ("code", "seconds", "said"),
    [
        ("import time; time.sleep(60)", 2.5, "cut off after 2 s, when the minutes were over"),
        ("import time; time.sleep(60)", 0.5, "not run, 0 s were left and it takes some 0"),
        ("raise ValueError('no room')", 60, "failed with exit code 1: ValueError: no room"),
    ],
)
def test_a_part_that_did_not_end_well_is_named_and_the_rest_goes_on(
    code: str, seconds: float, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(gpu, "COMMAND", [sys.executable, "-c", code])
    made = bench(tmp_path, seconds)
    made._measure(Part("stream", "7b", 1, 1))
    assert f"* 7b TP 1 stream, pair 1: {said}" in made.write()


def test_what_failed_once_is_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    tried = []

    def measure(self: gpu.Bench, part: Part) -> None:
        tried.append((part.kind, part.pair))
        part.rate = 9.0 if part.kind == "stream" else None
        self._results.parts.append(part)

    monkeypatch.setattr(gpu.Bench, "_measure", measure)
    monkeypatch.setattr(gpu.Bench, "_process", lambda *_: True)
    monkeypatch.setattr(gpu, "write", lambda size, folder, rehearse: "idefics3")
    made = bench(tmp_path, 60)
    made._rehearse = False
    made.run()
    assert tried == [("stream", 1), ("bare", 1), *(("stream", pair) for pair in range(2, gpu.PAIRS + 1))]


def test_what_needs_gpus_is_named_where_there_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gpu, "COMMAND", [sys.executable, "-c", "raise SystemExit(3)"])
    monkeypatch.setattr(gpu, "write", lambda size, folder, rehearse: "idefics3")
    made = bench(tmp_path, 60)
    made.run()
    table = made.write()
    assert "* the busy share of GPUs: NVML does not answer (OSError: no driver)" in table
    assert "* prepare: failed with exit code 3" in table
    assert "* nothing else was run" in table
